"""What may be chosen about MOVie in a program."""

import pytest

from movie.errors import InputError
from movie.torch.config import VARIABLES, Config


@pytest.mark.parametrize(
    "chosen",
    [
        {"page": 0},
        {"page": "3MiB"},
        {"page": "1GiB"},
        {"options": {"page": "0"}},
        {"options": {"largest_page": "5MiB"}},
    ],
)
def test_a_page_that_cannot_be(chosen):
    with pytest.raises(InputError, match="is not a multiple of 2 MiB, up to 512 MiB"):
        Config(**chosen)


@pytest.mark.parametrize("chosen", [{"memory": 0}, {"memory": "0GiB"}, {"budget": 0}])
def test_no_memory_at_all_is_no_way_to_say_no_limit(chosen):
    with pytest.raises(InputError, match="leaves nothing"):
        Config(**chosen)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("speed=fast", "option 'speed' is unknown; there are: .*most_mapped"),
        ("most_mapped=nan", "most_mapped"),
        ("most_mapped=inf", "most_mapped"),
        ("most_mapped=-1", "most_mapped"),
        ("recall=perhaps", "neither on nor off"),
        ("combine=none", "none"),
        ("largest_page=2MiB,page=4MiB", "largest"),
    ],
)
def test_options_are_checked_before_anything_runs(options, said):
    with pytest.raises(InputError, match=said):
        Config.from_environment({"MOVIE_OPTIONS": options})


def test_a_configuration_survives_the_environment():
    config = Config("lean", "40GiB", "30GiB", "4MiB", "native", "off", {"recall": "off", "most_views": "7"})
    variables = config.to_environment()
    assert set(variables) == set(VARIABLES)
    assert Config.from_environment(variables) == config
    assert Config.from_environment({}) == Config()
