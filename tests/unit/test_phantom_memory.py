"""Memory of the phantom card, and the rules of its driver: a broken one is a code and one line that names the call."""

import pytest
from phantom_calls import CALLS, outcome, output

TWO_PAGES = """
place = get("cuMemAddressReserve", 8 * MIB, 0, 0, 0)
first, second = create(2 * MIB), create(4 * MIB)
ok("cuMemMap", place, 2 * MIB, 0, first, 0)
ok("cuMemMap", place + 2 * MIB, 4 * MIB, 0, second, 0)
"""


def test_plain_allocations_take_whole_granules_at_descending_addresses() -> None:
    lines = output("""
        before, total = memory_info()
        places = [get("cudaMalloc", size) for size in (1, 2 * MIB, 5 * MIB)]
        after, _ = memory_info()
        print(before - after == 10 * MIB, [place % (2 * MIB) for place in places], places == sorted(places)[::-1])
        for place in places:
            ok("cudaFree", place)
        print(memory_info() == (before, total))
        print(get("cudaMalloc", 2 * MIB) == places[0])
    """)
    assert lines == ["True [0, 0, 0] True", "True", "True"]


def test_the_card_is_as_large_as_it_says() -> None:
    lines = output(
        """
        free, total = memory_info()
        print(total // MIB, total - free > 0)
        out = c_uint64()
        print(do("cudaMalloc", byref(out), free + 1), do("cuMemCreate", byref(out), total, byref(Prop(1, 0, 1, 0)), 0))
        place = get("cudaMalloc", free // (2 * MIB) * (2 * MIB))
        print(do("cudaMalloc", byref(out), 1), cuda.cudaGetLastError(), cuda.cudaGetLastError())
        """,
        memory=1 << 30,
    )
    assert lines == ["1024 True", "2 2", "2 2 0"]


def test_memory_that_others_hold_is_not_free() -> None:
    lines = output("print(memory_info()[0] // MIB)", memory=3 << 30, MOVIE_PHANTOM_TAKEN=str(1 << 30))
    assert lines == [str(2048 - 414)]


def test_mappings_hold_memory_until_the_last_is_gone() -> None:
    lines = output(
        TWO_PAGES
        + """
used = lambda: cuda.movie_phantom_used(0) // MIB
other = get("cuMemAddressReserve", 4 * MIB, 0, 0, 0)
ok("cuMemMap", other, 4 * MIB, 0, second, 0)
ok("cuMemRelease", second)
print(used())
ok("cuMemUnmap", place, 6 * MIB)
print(used())
ok("cuMemUnmap", other, 4 * MIB)
print(used())
ok("cuMemRelease", first)
print(used(), counters()["violations"])
"""
    )
    assert lines == ["6", "6", "2", "0 0"]


# What is done after TWO_PAGES, and what the line about it says.
BROKEN = {
    "a part of a mapping is unmapped": ('do("cuMemUnmap", place + 2 * MIB, 2 * MIB)', "ends inside a mapping"),
    "unmapping what is not mapped": ('do("cuMemUnmap", place + 6 * MIB, 2 * MIB)', "not mapped"),
    "a range that is mapped already": ('do("cuMemMap", place, 2 * MIB, 0, create(2 * MIB), 0)', "mapped already"),
    "a part of a handle": ('do("cuMemMap", place + 6 * MIB, 2 * MIB, 0, create(4 * MIB), 0)', "one whole handle"),
    "the rest of a handle": (
        'do("cuMemMap", place + 6 * MIB, 2 * MIB, 2 * MIB, create(4 * MIB), 0)',
        "offset must be 0",
    ),
    "outside the reservation": ('do("cuMemMap", place + 6 * MIB, 4 * MIB, 0, second, 0)', "not inside one reserved"),
    "an odd address": ('do("cuMemMap", place + 6 * MIB + 4096, 2 * MIB, 0, first, 0)', "multiple of the granularity"),
    "an odd size": (
        'do("cuMemCreate", byref(c_uint64()), MIB, byref(Prop(1, 0, 1, 0)), 0)',
        "multiple of the granularity",
    ),
    "access to what is not mapped": ("may_touch(place, 8 * MIB)", "not mapped"),
    "access to a part of a mapping": ("may_touch(place, 4 * MIB)", "ends inside a mapping"),
    "a reservation with mappings goes": ('do("cuMemAddressFree", place, 8 * MIB)', "still mapped"),
    "a part of a reservation goes": ('do("cuMemAddressFree", place, 4 * MIB)', "not exactly a reserved range"),
    "a handle is released twice": ('do("cuMemRelease", first) or do("cuMemRelease", first)', "released before"),
    "a released handle is mapped": (
        'do("cuMemRelease", first) or do("cuMemMap", place + 6 * MIB, 2 * MIB, 0, first, 0)',
        "no such handle, or released",
    ),
    "the card is said to be the host": (
        'do("cudaMemcpy", place, place + MIB, 8, 2)',
        "the kind 2 is not that of the addresses",
    ),
    "the host is said to be the card": (
        'do("cudaMemcpy", ctypes.addressof(ctypes.create_string_buffer(8)), get("cudaMalloc", 8), 8, 3)',
        "the kind 3 is not that of the addresses",
    ),
    "a plain free of a mapping": ('do("cudaFree", place)', "no allocation begins there"),
    "a plain free inside an allocation": (
        'do("cudaFree", get("cudaMalloc", 4 * MIB) + 512)',
        "no allocation begins there",
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_a_code_and_a_line(rule: str) -> None:
    call, line = BROKEN[rule]
    code, errors = outcome(f"{TWO_PAGES}\nassert {call} == INVALID\nassert counters()['violations'] == 1")
    assert code == 0, errors
    assert errors.startswith("phantom: a rule of the driver was broken by cu")
    assert line in errors
    assert errors.count("\n") == 1


def test_a_broken_rule_ends_the_run_where_that_is_asked_for() -> None:
    code, errors = outcome(TWO_PAGES + 'do("cuMemUnmap", place, MIB)', MOVIE_PHANTOM_STRICT="abort")
    assert code == 96
    assert "cuMemUnmap: unmap(address=0x" in errors


def test_work_on_memory_without_access_is_refused() -> None:
    lines = output(
        TWO_PAGES
        + """
print(do("cudaMemsetAsync", place, 0, 2 * MIB, stream()))
print(may_touch(place, 6 * MIB), do("cudaMemsetAsync", place + MIB, 0, 3 * MIB, stream()))
print(do("cudaMemsetAsync", place + 4 * MIB, 0, 3 * MIB, stream()))
"""
    )
    assert lines == ["1", "0 0", "1"]


def test_handles_can_be_found_again_and_kept() -> None:
    lines = output(
        TWO_PAGES
        + """
found = get("cuMemRetainAllocationHandle", place + 3 * MIB)
print(found == second)
ok("cuMemRelease", second)
ok("cuMemUnmap", place + 2 * MIB, 4 * MIB)
print(cuda.movie_phantom_used(0) // MIB)
ok("cuMemRelease", found)
print(cuda.movie_phantom_used(0) // MIB, do("cuMemRetainAllocationHandle", byref(c_uint64()), place + 3 * MIB))
"""
    )
    assert lines == ["True", "6", "2 1"]


def test_handles_go_to_other_processes_as_files() -> None:
    lines = output("""
        import os
        handle = create(4 * MIB, handles=1)
        file = c_int()
        ok("cuMemExportToShareableHandle", byref(file), handle, 1, 0)
        print(os.fstat(file.value).st_size // MIB)
        again = get("cuMemImportFromShareableHandle", file.value, 1)
        os.close(file.value)
        ok("cuMemRelease", handle)
        print(again == handle, cuda.movie_phantom_used(0) // MIB)
        ok("cuMemRelease", again)
        print(cuda.movie_phantom_used(0))
        private, out = create(2 * MIB), c_int()
        print(do("cuMemExportToShareableHandle", byref(out), private, 1, 0))
        print(do("cuMemCreate", byref(c_uint64()), 2 * MIB, byref(Prop(1, 8, 1, 0)), 0))
    """)
    assert lines == ["4", "True 4", "0", "1", "800"]


def test_plain_allocations_go_to_other_processes_by_name() -> None:
    token = """
class Token(ctypes.Structure):
    _fields_ = [("bytes", c_uint8 * 64)]
"""
    lines = output(
        token
        + """
import subprocess, sys
place, silent = get("cudaMalloc", 6 * MIB), event(2)
memory, passed = Token(), Token()
ok("cudaIpcGetMemHandle", byref(memory), place + 4096)
ok("cudaIpcGetEventHandle", byref(passed), event(6))
print(do("cudaIpcOpenMemHandle", byref(c_uint64()), memory, 1), do("cudaIpcGetEventHandle", byref(Token()), silent))
code = PROGRAM_SO_FAR + f'''
place = get("cudaIpcOpenMemHandle", Token.from_buffer_copy({bytes(memory)!r}), 1)
passed = get("cudaIpcOpenEventHandle", Token.from_buffer_copy({bytes(passed)!r}))
print(cuda.movie_phantom_used(0), do("cudaMemset", place, 0, 6 * MIB), do("cudaEventQuery", passed))
print(do("cudaFree", place), do("cudaIpcCloseMemHandle", place), do("cudaMemset", place, 0, 1))
'''
print(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout, end="")
""".replace("PROGRAM_SO_FAR", repr(CALLS + token))
    )
    assert lines == ["201 400", "0 0 0", "1 0 1"]


def test_pointers_are_known() -> None:
    lines = output(
        TWO_PAGES
        + """
class Attributes(ctypes.Structure):
    _fields_ = [("type", c_int), ("device", c_int), ("on_device", c_void_p), ("on_host", c_void_p)]

def kind(pointer):
    out = Attributes()
    ok("cudaPointerGetAttributes", byref(out), pointer)
    return out.type

pinned = get("cudaHostAlloc", 4096, 0)
own = ctypes.create_string_buffer(8192)
print(kind(place + 3 * MIB), kind(place + 7 * MIB), kind(get("cudaMalloc", 10) + 9), kind(pinned + 4095))
ok("cudaHostRegister", ctypes.addressof(own), 8192, 0)
print(kind(ctypes.addressof(own)), do("cudaHostRegister", ctypes.addressof(own) + 4096, 1, 0))
ok("cudaHostUnregister", ctypes.addressof(own))
print(kind(ctypes.addressof(own)), do("cudaHostUnregister", ctypes.addressof(own)))
print(do("cudaFreeHost", pinned), kind(pinned))
"""
    )
    assert lines == ["2 0 2 1", "1 712", "0 713", "0 0"]


def test_pools_give_memory_back_in_the_order_of_streams() -> None:
    lines = output(
        """
        pool = get("cudaDeviceGetDefaultMemPool", 0)
        def attribute(number):
            out = c_uint64()
            ok("cudaMemPoolGetAttribute", pool, number, byref(out))
            return out.value // MIB
        one, two = stream(), stream()
        first = get("cudaMallocAsync", 20 * MIB, one)
        print(attribute(5), attribute(7))
        launch(one)
        ok("cudaFreeAsync", first, one)
        print(get("cudaMallocAsync", 20 * MIB, two) == first, get("cudaMallocAsync", 20 * MIB, one) == first)
        print(attribute(5), attribute(7), do("cudaFreeAsync", first + 512, one))
        ok("cudaFreeAsync", first, one)
        ok("cudaDeviceSynchronize")
        print(attribute(5), attribute(6), attribute(8))
        """,
        lag=-1,
    )
    assert lines == ["32 20", "False True", "64 40 1", "32 64 40"]


# Calls drawn from a seed, about half of them against the rules. A model of few lines says what each must answer; the
# card's memory must follow it, and a call that is refused must change nothing.
DRAWN = """
import random

draw = random.Random(SEED)
PAGE = 2 * MIB
reserved, handles, mapped = {}, {}, {}  # begin -> pages; handle -> [pages, owned, mappings]; begin -> (handle, access)


def used():
    return sum(pages for pages, owned, times in handles.values() if owned or times)


def whole(begin, pages):
    \"\"\"The mappings that make up the range, None if they are not complete.\"\"\"
    found, at = [], begin
    while at < begin + pages * PAGE:
        if at not in mapped:
            return None
        found.append(at)
        at += handles[mapped[at][0]][0] * PAGE
    return found if at == begin + pages * PAGE else None


def covered(begin, pages):
    taken = [(at, at + handles[one][0] * PAGE) for at, (one, _) in mapped.items()]
    return any(low < begin + pages * PAGE and begin < high for low, high in taken)


def pick(things):
    return draw.choice(list(things)) if things else 0


refused = 0
for step in range(1500):
    kind = draw.choice("reserve create create map map map map access unmap release free".split())
    at = pick(reserved)
    begin, pages = at + draw.randrange(5) * PAGE, draw.randint(1, 3)
    if kind == "reserve":
        reserved[get("cuMemAddressReserve", 6 * PAGE, 0, 0, 0)] = 6
        continue
    if kind == "create":
        handles[create(pages * PAGE)] = [pages, True, 0]
        continue
    if kind == "map":
        one = pick(handles)
        size = handles[one][0] if one and draw.random() < 0.8 else pages
        good = (one and at and handles[one][1] and size == handles[one][0]
                and begin + size * PAGE <= at + 6 * PAGE and not covered(begin, size))
        code = do("cuMemMap", begin, size * PAGE, 0, one, 0)
        if good:
            mapped[begin] = [one, False]
            handles[one][2] += 1
    elif kind in ("access", "unmap"):
        begin = pick(mapped) if draw.random() < 0.6 else begin
        pages = handles[mapped[begin][0]][0] if begin in mapped and draw.random() < 0.6 else pages
        parts = whole(begin, pages)
        good = bool(parts)
        code = may_touch(begin, pages * PAGE) if kind == "access" else do("cuMemUnmap", begin, pages * PAGE)
        for part in parts or []:
            if kind == "access":
                mapped[part][1] = True
            else:
                handles[mapped.pop(part)[0]][2] -= 1
    elif kind == "release":
        one = pick(handles)
        good = bool(one) and handles[one][1]
        code = do("cuMemRelease", one)
        if good:
            handles[one][1] = False
    else:
        size = 6 if draw.random() < 0.7 else pages
        good = bool(at) and size == 6 and not covered(at, 6)
        code = do("cuMemAddressFree", at, size * PAGE)
        if good:
            del reserved[at]
    handles = {one: state for one, state in handles.items() if state[1] or state[2]}
    refused += not good
    assert code == (0 if good else INVALID), (step, kind, code, good)
    assert cuda.movie_phantom_used(0) == used() * PAGE, (step, kind)
    if mapped:
        place = pick(mapped)
        assert do("cudaMemsetAsync", place + 512, 0, 1024, 0) == (0 if mapped[place][1] else INVALID), (step, kind)
        refused += not mapped[place][1]
assert counters()["violations"] == refused
print(refused > 300, len(mapped) > 0)
"""


@pytest.mark.parametrize("seed", range(6))
def test_drawn_calls_are_answered_as_a_model_of_the_rules_says(seed: int) -> None:
    assert output(DRAWN.replace("SEED", str(seed)), memory=64 << 30) == ["True True"]
