import pytest
from hypothesis import given
from hypothesis import strategies as st

from movie.errors import InputError
from movie.sizes import LARGEST, format_size, looks_like_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("80GiB", 80 * 1024**3),
        ("1.5 GB", 1_500_000_000),
        ("2MiB", 2 * 1024**2),
        ("2 mib", 2 * 1024**2),
        (" 64M ", 64 * 1024**2),
        ("1024", 1024),
        ("0", 0),
        ("7B", 7),
        (".5KiB", 512),
        ("1.KB", 1000),
        ("1.1TiB", round(1.1 * 1024**4)),
        (1024, 1024),
        ("4194304T", LARGEST),
    ],
)
def test_sizes_are_read_as_people_write_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "GiB", "80 gigs", "1,5GB", "-1GiB", "1e9", "0x10", "1..5GB", "8 Gi", "inf", "nan", "١GiB"]
)
def test_what_is_no_size_is_an_error_that_shows_how(text):
    with pytest.raises(InputError, match=r"is not a size: write .*80GiB"):
        parse_size(text)


@pytest.mark.parametrize("size", [-1, LARGEST + 1, "5000000T", "9" * 400 + "GiB"])
def test_sizes_out_of_range_are_errors(size):
    with pytest.raises(InputError, match="is out of range: sizes go from 0 to 4096 PiB"):
        parse_size(size)


def test_the_error_names_the_thing():
    with pytest.raises(InputError, match=r"^--memory 'x' is not a size"):
        parse_size("x", what="--memory")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.50 KiB"),
        (2 * 1024**2, "2 MiB"),
        (1024**2 - 1, "1 MiB"),
        (1024**3 - 1, "1 GiB"),
        (41607495680, "38.75 GiB"),
        (-1536, "-1.50 KiB"),
        (LARGEST, "4096 PiB"),
    ],
)
def test_sizes_print_in_the_unit_that_fits(size, text):
    assert format_size(size).replace(".00 ", " ") == text


@given(st.integers(0, LARGEST))
def test_what_is_printed_can_be_read_back(size):
    assert abs(parse_size(format_size(size)) - size) <= size * 0.005


@pytest.mark.parametrize(
    ("text", "yes"), [("8MiB", True), ("1 G", True), ("5b", True), ("8", False), ("greedy", False), ("8x", False)]
)
def test_only_numbers_with_a_unit_look_like_sizes(text, yes):
    assert looks_like_size(text) is yes
