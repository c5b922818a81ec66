from movie.trace.errors import TraceError


def test_one_line_with_file_place_and_fault():
    assert str(TraceError("a.pickle", "byte 3", "is truncated")) == "a.pickle: byte 3: is truncated"
    assert str(TraceError("a.pickle", "", "is empty")) == "a.pickle: is empty"


def test_what_the_file_holds_cannot_break_the_line_or_the_terminal():
    text = str(TraceError("a\nb", "x", "global \x1b[31mos\r\n" + "y" * 5000))
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text
    assert len(text) <= 400
