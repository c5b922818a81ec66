"""The text format: what it accepts, what it refuses, and that nothing changes on the way through it."""

from dataclasses import replace

import numpy as np
import pytest
from small_snapshots import MIB, alloc, event, free, names, read, segment, snapshot

from movie.trace import Action, TraceError, read_trace, write_trace
from movie.trace.model import same

HEAD = "# gpu-alloc-case 1\n"


def parse(tmp_path, text):
    path = tmp_path / "a.case"
    path.write_text(text, newline="")
    [trace] = read_trace(path)
    return trace


def test_all_operations(tmp_path):
    trace = parse(
        tmp_path,
        HEAD + "# title: a\n#   b\n# kind: c\ncapacity 100\nsplit_limit 50\nalloc x 10 0 0\nalloc y 20 -3 7\n"
        "use x 1\nuse y -3\nfree x\nfree y\nsync\nempty_cache\nexternal 9\nexternal_free 9\n",
    )
    assert names(trace) == [
        "alloc 0",
        "alloc 1",
        "use 0",
        "use 1",
        "free_requested 0",  # stream 1 may still use it
        "free_requested 1",
        "free_completed 1",
        "sync -1",
        "empty_cache -1",
        "external -1",
        "external_free -1",
    ]
    assert trace.header == {"title": "a b", "kind": "c"}
    assert (trace.capacity, trace.split_limit, trace.pools) == (100, 50, ("default", "7"))
    assert trace.stream.tolist() == [0, -3, 1, -3, 0, -3, -3, 0, 0, 0, 0]
    assert trace.bytes.tolist() == [10, 20, 0, 0, 10, 20, 20, 0, 0, 9, 9]
    assert trace.pool.tolist() == [0, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0]
    assert trace.complete
    assert not trace.completions_recorded
    write_trace(trace, tmp_path / "b.case")
    [again] = read_trace(tmp_path / "b.case")
    assert same(trace, again)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("# gpu-alloc-case 2\ncapacity none\n", 1, "not '# gpu-alloc-case 1'"),
        ("# gpu-alloc-case 10\ncapacity none\n", 1, "not '# gpu-alloc-case 1'"),
        (HEAD, 2, "capacity"),
        (HEAD + "alloc a 1 0 0\n", 2, "capacity"),
        (HEAD + "capacity -1\n", 2, "the size -1"),
        (HEAD + "# title\ncapacity none\n", 2, "key: text"),
        (HEAD + "# a: x\n# a: y\ncapacity none\n", 3, "a second 'a'"),
        (HEAD + "capacity none\nalloc a 1 0\n", 3, "takes 4 fields"),
        (HEAD + "capacity none\nalloc  a 1 0 0\n", 3, "takes 4 fields"),
        (HEAD + "capacity none\nmalloc a 1 0 0\n", 3, "'malloc' is not an operation"),
        (HEAD + "capacity none\n\n", 3, "'' is not an operation"),
        (HEAD + "capacity none\nalloc a-b 1 0 0\n", 3, "is not a name"),
        (HEAD + "capacity none\nalloc a 0 0 0\n", 3, "the size 0"),
        (HEAD + "capacity none\nalloc a -5 0 0\n", 3, "the size -5"),
        (HEAD + "capacity none\nalloc a 1.5 0 0\n", 3, "is not a number"),
        (HEAD + "capacity none\nalloc a 4611686018427387905 0 0\n", 3, "is not from 1 to"),
        (HEAD + f"capacity none\nalloc a {'9' * 5000} 0 0\n", 3, "the size '99"),
        (HEAD + "capacity none\nalloc a 1 9223372036854775808 0\n", 3, "the stream"),
        (HEAD + "capacity none\nalloc a 1 0 -1\n", 3, "the pool"),
        (HEAD + "capacity none\nalloc a 1 0 0\nalloc a 1 0 0\n", 4, "second time"),
        (HEAD + "capacity none\nfree a\n", 3, "'a' was never allocated"),
        (HEAD + "capacity none\nalloc a 1 0 0\nfree a\nfree a\n", 5, "'a' was freed already"),
        (HEAD + "capacity none\nalloc a 1 0 0\nfree a\nalloc a 1 0 0\n", 5, "second time"),
        (HEAD + "capacity none\nalloc a 1 0 0\nfree a\nuse a 1\n", 5, "freed already"),
        (HEAD + "capacity none\nexternal 5\nexternal_free 6\n", 4, "more than they took"),
    ],
)
def test_faults_are_named_with_their_line(tmp_path, text, line, what):
    with pytest.raises(TraceError) as caught:
        parse(tmp_path, text)
    assert caught.value.where == f"line {line}"
    assert what in str(caught.value)


def test_not_ascii(tmp_path):
    with pytest.raises(TraceError, match="byte 19: is not ASCII"):
        parse(tmp_path, HEAD + "ä")


def test_a_snapshot_as_text(tmp_path):
    """Start blocks come first; a free that completed late is pending behind a stream of its own."""
    base = 1 << 30
    trace = read(
        tmp_path,
        snapshot(
            [
                alloc(base + 2 * MIB, MIB, stream=5),
                event("free_requested", base + 2 * MIB, MIB, stream=5),
                *free(base, MIB - 7),
                event("free_completed", base + 2 * MIB, MIB, stream=5),
                alloc(base, 99),
            ],
            [segment(base, 4 * MIB, [(0, 512, 99, "active_allocated"), (3 * MIB, MIB, MIB, "active_pending_free")])],
        ),
    )
    write_trace(trace, tmp_path / "b.txt")
    lines = (tmp_path / "b.txt").read_text().splitlines()
    assert lines[lines.index("capacity none") + 1 :] == [
        f"alloc b0 {MIB - 7} 0 0",
        f"alloc b1 {MIB} 0 0",
        "use b1 6",
        "free b1",
        f"alloc b2 {MIB} 5 0",
        "use b2 6",
        "free b2",
        "free b0",
        "alloc b3 99 0 0",
    ]
    [again] = read_trace(tmp_path / "b.txt")
    allocated = again.action == Action.ALLOC
    assert np.sort(again.bytes[allocated]).tolist() == [99, MIB - 7, MIB, MIB]


def test_windows_line_ends_and_separators_that_are_no_line_ends(tmp_path):
    assert len(parse(tmp_path, HEAD.replace("\n", "\r\n") + "capacity none\r\nalloc a 1 0 0\r\n")) == 1
    with pytest.raises(TraceError, match=r"line 3: 'sync\\x1csync' is not an operation"):
        parse(tmp_path, HEAD + "capacity none\nsync\x1csync\n")


@pytest.mark.parametrize(
    ("key", "text"), [("a: b", "c"), ("", "c"), ("a", "b\nfree x"), ("a", "b  c"), ("a", "ä"), (" a", "c")]
)
def test_headers_that_a_case_cannot_have(tmp_path, key, text):
    trace = replace(parse(tmp_path, HEAD + "capacity none\n"), header={key: text})
    with pytest.raises(TraceError, match="a text case has no header"):
        write_trace(trace, tmp_path / "b.case")
    assert not (tmp_path / "b.case").exists()


def test_long_headers(tmp_path):
    header = {"a": " ".join(["words"] * 100), "b": "", "c-d e": "x:y # z", "f": "w" * 300}
    trace = replace(parse(tmp_path, HEAD + "capacity none\n"), header=header)
    write_trace(trace, tmp_path / "b.case")
    assert read_trace(tmp_path / "b.case")[0].header == header
