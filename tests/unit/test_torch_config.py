"""What may be chosen about MOVie in a program."""

import pytest

from movie.errors import InputError
from movie.torch.config import Config


@pytest.mark.parametrize("chosen", [{"page": 0}, {"page": "3MiB"}, {"options": {"page": "0"}}])
def test_a_page_that_cannot_be(chosen):
    with pytest.raises(InputError, match="is not a multiple of 2 MiB"):
        Config(**chosen)
