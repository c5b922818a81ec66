import pytest

from movie.allocators import default_allocators, known_allocators, options_of, parse_allocator, with_page_size
from movie.errors import InputError


def test_a_name_alone_is_an_allocator():
    spec = parse_allocator(" movie ")
    assert (spec.name, spec.options, str(spec)) == ("movie", {}, "movie")


def test_options_follow_a_colon_and_sizes_become_bytes():
    spec = parse_allocator("movie:page=8MiB, combine=greedy")
    assert spec.name == "movie"
    assert spec.options == {"page": str(8 * 2**20), "combine": "greedy"}
    assert str(spec) == "movie:page=8MiB, combine=greedy"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["''", "native", "movie", "movie-lean", "bound"]),
        ("Movie", ["'Movie'", "movie"]),
        ("movie:", ["key=value"]),
        ("movie:page", ["'page'", "key=value"]),
        ("movie:=1", ["'=1'", "key=value"]),
        ("movie:page=", ["'page='", "key=value"]),
        ("movie:pages=1", ["'pages'", "page"]),
        ("movie:page=2MiB,page=4MiB", ["'page'", "twice"]),
        ("movie:page=3MB", ["movie:page=3MB"]),
        ("movie:combine=best", ["movie:combine=best"]),
        ("bound:page=2MiB", ["'bound'", "'page'", "none"]),
    ],
)
def test_what_is_wrong_is_said_with_what_there_is(text, parts):
    with pytest.raises(InputError) as caught:
        parse_allocator(text)
    for part in parts:
        assert part in str(caught.value)


def test_every_name_has_a_summary_and_can_be_parsed():
    known = known_allocators()
    assert set(known) >= {"native", "movie", "movie-lean", "bound"}
    for name, summary in known.items():
        assert summary
        assert parse_allocator(name).name == name


def test_a_page_size_goes_to_those_that_have_pages_and_none_of_their_own():
    specs = [parse_allocator(text) for text in ("native", "movie", "movie:page=2MiB", "bound")]
    changed = with_page_size(specs, 8 * 2**20)
    assert [spec.options.get("page") for spec in changed] == [None, str(8 * 2**20), str(2 * 2**20), None]
    assert [str(spec) for spec in changed] == [str(spec) for spec in specs]


@pytest.mark.parametrize("names", [["native"], ["native", "bound"]])
def test_a_page_size_for_nobody_is_an_error(names):
    with pytest.raises(InputError, match="--page: none of"):
        with_page_size([parse_allocator(name) for name in names], 2**21)


def test_a_page_size_that_does_not_work_is_an_error():
    with pytest.raises(InputError, match="movie"):
        with_page_size([parse_allocator("movie")], 12345)


def test_the_default_is_native_ours_and_the_floor():
    assert [spec.name for spec in default_allocators()] == ["native", "movie", "movie-lean", "bound"]
    assert options_of("native")
