"""`python -m movie` is the command `movie`."""

from movie.commands import main

main()
