"""Bytes mode: device memory with bytes in it, and work that is really done and really late."""

import pytest
from phantom_calls import CALLS, outcome, output

# A page mapped at two places, and helpers that move whole blocks of bytes.
VIEWS = """
def mapped(pages, size=2 * MIB):
    place = get("cuMemAddressReserve", size * len(pages), 0, 0, 0)
    for at, page in enumerate(pages):
        ok("cuMemMap", place + size * at, size, 0, page, 0)
    assert may_touch(place, size * len(pages)) == 0
    return place

def put(place, data, on=0):
    ok("cudaMemcpyAsync", place, c_char_p(data), len(data), 1, on)

def look(place, size):
    out = ctypes.create_string_buffer(size)
    ok("cudaMemcpy", ctypes.addressof(out), place, size, 2)
    return out.raw
"""


def test_what_is_written_is_read_back() -> None:
    lines = output(
        VIEWS
        + """
place = get("cudaMalloc", 8 * MIB)
put(place + 3 * MIB - 5, b"across pages")
ok("cudaMemset", place, 0x5a, 7)
ok("cuMemsetD32Async", place + 8, 0x01020304, 2, 0)
print(look(place + 3 * MIB - 5, 12), look(place, 16))
ok("cudaMemcpy", place + 100, place + 3 * MIB - 5, 12, 3)
print(look(place + 100, 6))
rows = bytes(range(24))
ok("cudaMemcpy2DAsync", place + 256, 16, c_char_p(rows), 8, 6, 3, 1, 0)
print([list(look(place + 256 + 16 * row, 7)) for row in range(3)])
""",
        MOVIE_PHANTOM_BYTES="1",
    )
    assert lines[0] == repr(b"across pages") + " " + repr(b"\x5a" * 7 + b"\0" + b"\4\3\2\1" * 2)
    assert lines[1] == repr(b"across")
    assert lines[2] == str([[*range(8 * row, 8 * row + 6), 0] for row in range(3)])


def test_views_of_one_page_are_the_same_bytes() -> None:
    lines = output(
        VIEWS
        + """
pages = [create(2 * MIB) for _ in range(3)]
home, view = mapped(pages), mapped([pages[2], pages[0]])
put(home, b"first")
put(home + 4 * MIB, b"third")
print(look(view, 5), look(view + 2 * MIB, 5))
ok("cuMemUnmap", home, 6 * MIB)
put(view + 2 * MIB - 2, b"over the seam")
again = mapped([pages[0], pages[2]])
print(look(again, 11), look(again + 4 * MIB - 2, 2))
""",
        MOVIE_PHANTOM_BYTES="1",
    )
    assert lines == ["b'third' b'first'", "b'er the seam' b'ov'"]


def test_copies_happen_when_the_card_gets_there() -> None:
    lines = output(
        VIEWS
        + """
one, place = stream(), get("cudaMalloc", 4096)
pinned = get("cudaHostAlloc", 4096, 0)
source = (ctypes.c_char * 16).from_address(pinned)
source.raw = b"as it was before"
ok("cudaMemcpyAsync", place, pinned, 16, 1, one)
source.raw = b"changed too soon"
pageable = ctypes.create_string_buffer(b"taken at once", 14)
ok("cudaMemcpyAsync", place + 64, ctypes.addressof(pageable), 14, 1, one)
pageable.raw = b"overwritten..."
ok("cudaMemcpyAsync", pinned + 64, place, 16, 2, one)
print((ctypes.c_char * 16).from_address(pinned + 64).raw == bytes(16))
ok("cudaStreamSynchronize", one)
print((ctypes.c_char * 16).from_address(pinned + 64).raw, look(place + 64, 13))
""",
        lag=-1,
        MOVIE_PHANTOM_BYTES="1",
    )
    assert lines == ["True", "b'changed too soon' b'taken at once'"]


def test_copies_between_cards() -> None:
    lines = output(
        VIEWS
        + """
here = get("cudaMalloc", 4096)
put(here, b"to the other card")
ok("cudaSetDevice", 1)
there = get("cudaMalloc", 4096)
ok("cudaMemcpyPeerAsync", there, 1, here, 0, 17, 0)
print(look(there, 17), do("cudaMemcpyPeerAsync", there, 0, here, 0, 17, 0))
""",
        count=2,
        MOVIE_PHANTOM_BYTES="1",
    )
    assert lines == ["b'to the other card' 1"]


def test_bytes_of_an_exported_handle_are_seen_by_another_process() -> None:
    lines = output(
        VIEWS
        + """
import os, subprocess, sys
page, file = create(2 * MIB, handles=1), c_int()
place = mapped([page])
put(place + 77, b"from the first")
ok("cudaDeviceSynchronize")
ok("cuMemExportToShareableHandle", byref(file), page, 1, 0)
code = PROGRAM_SO_FAR + f'''
page = get("cuMemImportFromShareableHandle", {file.value}, 1)
place = mapped([page])
print(look(place + 77, 14), cuda.movie_phantom_used(0), flush=True)
put(place + 77, b"from the other")
ok("cudaDeviceSynchronize")
'''
subprocess.run([sys.executable, "-c", code], pass_fds=[file.value], check=True)
print(look(place + 77, 14))
""".replace("PROGRAM_SO_FAR", repr(CALLS + VIEWS)),
        MOVIE_PHANTOM_BYTES="1",
    )
    assert lines == ["b'from the first' 0", "b'from the other'"]


def test_a_graph_does_its_copies_each_time_it_is_launched() -> None:
    lines = output(
        VIEWS
        + """
one, place = stream(), get("cudaMalloc", 4096)
ok("cudaStreamBeginCapture", one, 0)
ok("cudaMemcpyAsync", place + 8, place, 8, 3, one)
ok("cudaMemsetAsync", place, 0x41, 8, one)
graph = c_uint64()
ok("cudaStreamEndCapture", one, byref(graph))
exe = get("cudaGraphInstantiateWithFlags", graph.value, 0)
put(place, b"original")
print(look(place + 8, 8))
ok("cudaGraphLaunch", exe, one)
ok("cudaStreamSynchronize", one)
print(look(place, 16))
ok("cudaGraphLaunch", exe, one)
ok("cudaStreamSynchronize", one)
print(look(place, 16))
""",
        MOVIE_PHANTOM_BYTES="1",
    )
    assert lines == [repr(bytes(8)), "b'AAAAAAAAoriginal'", "b'AAAAAAAAAAAAAAAA'"]


def test_host_memory_given_back_too_early_is_caught() -> None:
    code, errors = outcome(
        """
        one, place = stream(), get("cudaMalloc", 4096)
        import mmap
        own = mmap.mmap(-1, 4096)
        at = ctypes.addressof(ctypes.c_char.from_buffer(own))
        ok("cudaHostRegister", at, 4096, 0)
        ok("cudaMemcpyAsync", place, at, 8, 1, one)
        ok("cudaHostUnregister", at)  # waits for the card, as the driver does
        assert counters()["violations"] == 0
        """,
        lag=-1,
        MOVIE_PHANTOM_BYTES="1",
    )
    assert code == 0, errors


# Programs that are drawn from a seed: blocks of 256 bytes in plain memory, in pages and in a second view of the same
# pages, on four streams of a card that lags. Each operation is ordered behind those that it depends on, so that the
# bytes are those of a program that does one thing after another. Prints how many blocks differed from that.
PROGRAM = """
import random
import sys

draw = random.Random(SEED)
SIZE, BLOCKS = 256, 24
pages = [create(2 * MIB) for _ in range(2)]
plain, home, view = get("cudaMalloc", 2 * MIB), mapped(pages), mapped(pages[::-1])
streams = [stream() for _ in range(4)]
pinned = get("cudaHostAlloc", 1 << 20, 0)

# A block: its name in the model, and the addresses under which it can be reached.
places = {("plain", at): [plain + at * 4096] for at in range(8)}
for at in range(16):
    page, offset = at // 8, at % 8 * 4096
    places["page", at] = [home + page * 2 * MIB + offset, view + (1 - page) * 2 * MIB + offset]
names = list(places)
model = {name: bytes(SIZE) for name in names}
touched = {name: [] for name in names}  # (stream, wrote) of what touched it
wrong = reads = 0
fresh = iter(range(0, 1 << 20, SIZE))


def order(on, name, writes):
    earlier = [s for s, wrote in touched[name] if s != on and (writes or wrote)]
    for other in dict.fromkeys(earlier):
        if draw.random() < FORGET:
            continue
        mark = event()
        ok("cudaEventRecord", mark, other)
        ok("cudaStreamWaitEvent", on, mark, 0)
    touched[name] = [*([] if writes else touched[name]), (on, writes)]


for step in range(600):
    on, to = draw.choice(streams), draw.choice(names)
    target = draw.choice(places[to])
    kind = draw.choice("fill pageable pinned copy copy read launch launch".split())
    if kind == "launch":
        launch(on)
    elif kind == "fill":
        order(on, to, True)
        value = draw.randrange(256)
        ok("cudaMemsetAsync", target, value, SIZE, on)
        model[to] = bytes([value]) * SIZE
    elif kind in ("pageable", "pinned"):
        order(on, to, True)
        data = draw.randbytes(SIZE)
        if kind == "pageable":
            buffer = ctypes.create_string_buffer(data, SIZE)
            ok("cudaMemcpyAsync", target, ctypes.addressof(buffer), SIZE, 1, on)
            buffer.raw = bytes(SIZE)
        else:
            here = pinned + next(fresh)
            ctypes.memmove(here, data, SIZE)
            ok("cudaMemcpyAsync", target, here, SIZE, 1, on)
        model[to] = data
    elif kind == "copy":
        source = draw.choice(names)
        if source == to:
            continue
        order(on, source, False)
        order(on, to, True)
        ok("cudaMemcpyAsync", target, draw.choice(places[source]), SIZE, 3, on)
        model[to] = model[source]
    else:
        order(on, to, False)
        here = pinned + next(fresh)
        ok("cudaMemcpyAsync", here, target, SIZE, 2, on)
        ok("cudaStreamSynchronize", on)
        reads += 1
        wrong += ctypes.string_at(here, SIZE) != model[to]
ok("cudaDeviceSynchronize")
for name in names:
    for place in places[name]:
        reads += 1
        wrong += look(place, SIZE) != model[name]
print(wrong, reads, counters()["violations"])
"""


def _program(seed: int, forget: float = 0.0, lag: int = 60) -> tuple[int, int, int]:
    code = VIEWS + PROGRAM.replace("SEED", str(seed)).replace("FORGET", str(forget))
    wrong, reads, violations = output(code, lag=lag, seed=seed, MOVIE_PHANTOM_BYTES="1")[0].split()
    return int(wrong), int(reads), int(violations)


@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("lag", [0, 60, -1])
def test_programs_that_wait_see_their_bytes(seed: int, lag: int) -> None:
    wrong, reads, violations = _program(seed, lag=lag)
    assert (wrong, violations) == (0, 0)
    assert reads > 90


def test_a_missing_wait_shows_as_wrong_bytes() -> None:
    assert all(_program(seed, forget=0.3)[0] > 0 for seed in range(1, 5))
