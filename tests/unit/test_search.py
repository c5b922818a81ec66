"""The smallest size that does: right where doing is monotone, and honest where it is not."""

from hypothesis import given
from hypothesis import strategies as st

from movie.evaluate.search import smallest

STEP = 10


def count(predicate):
    """The predicate, and the list of sizes that it was asked about."""
    asked = []

    def does(size):
        asked.append(size)
        return predicate(size)

    return does, asked


@given(need=st.integers(1, 10_000), low=st.integers(0, 10_000), guess=st.integers(0, 20_000))
def test_monotone(need, low, guess):
    does, asked = count(lambda size: size >= need)
    found = smallest(does, low, guess, STEP)
    expected = max(-(-max(need, low) // STEP), 1) * STEP
    assert found.size == expected
    assert found.fails_above == ()
    assert len(asked) == len(set(asked)), "asked twice"
    assert len(asked) <= 2 * 14 + 9


@given(st.data())
def test_whatever_it_finds_does_and_what_it_tried_above_is_told(data):
    fails = data.draw(st.sets(st.integers(1, 60)))
    does, asked = count(lambda size: size // STEP not in fails)
    found = smallest(does, data.draw(st.integers(0, 300)), data.draw(st.integers(0, 600)), STEP)
    assert found.size is not None
    assert found.size // STEP not in fails
    assert found.fails_above == tuple(sorted(s for s in asked if s > found.size and s // STEP in fails))


def test_sizes_above_are_tried_even_if_the_first_one_does():
    does, asked = count(lambda size: size != 150)
    found = smallest(does, 140, 1000, STEP)
    assert found.size == 140
    assert found.fails_above == (150,)
    assert max(asked) == 1000
    assert len(asked) > 5


def test_a_guess_that_does_not_do():
    does, asked = count(lambda size: size >= 5000)
    assert smallest(does, 0, 50, STEP).size == 5000
    assert max(asked) < 20_000


def test_nothing_does():
    assert smallest(lambda size: False, 100, 1000, STEP).size is None
