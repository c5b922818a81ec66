"""Forks, threads, workers, and the ways in which a program may end: nothing crashes and nothing hangs."""

import pytest
from torch_child import printed, run_under_movie


def test_a_forked_child_frees_in_silence_and_cannot_allocate():
    said = printed(
        """
        import json, os
        held = torch.ones(1000, device="cuda")
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            del held
            try:
                torch.empty(1, device="cuda")
                said = b"allocated"
            except RuntimeError as error:
                said = str(error).encode()
            os.write(writer, said)
            os._exit(0)
        os.close(writer)
        said = os.read(reader, 1000).decode()
        status = os.waitpid(child, 0)[1]
        print(json.dumps([said, status, held.numel(), torch.ones(2, device="cuda").numel()]))
        """,
        timeout=60,
    )
    assert "forked" in said[0] or "fork" in said[0]
    assert said[1:] == [0, 1000, 2]


def test_a_child_that_was_forked_before_the_first_use_has_a_card_of_its_own():
    said = printed(
        """
        import json, os
        reader, writer = os.pipe()
        if os.fork() == 0:
            block = torch.ones(1 << 20, device="cuda")
            os.write(writer, str(torch.cuda.memory_allocated()).encode())
            os._exit(0)
        os.close(writer)
        child = int(os.read(reader, 100))
        os.wait()
        block = torch.ones(1 << 21, device="cuda")
        print(json.dumps([child, torch.cuda.memory_allocated()]))
        """,
        timeout=60,
    )
    assert said == [1 << 22, 1 << 23]


def test_many_threads_and_streams():
    said = printed(
        """
        import ctypes, json, random, threading
        def work(seed):
            draw, held = random.Random(seed), []
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(400):
                    held.append(torch.empty(draw.randrange(1, 8 << 20), dtype=torch.uint8, device="cuda"))
                    held[-1].record_stream(torch.cuda.default_stream())
                    if len(held) > 8:
                        held.pop(draw.randrange(len(held)))
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        print(json.dumps([torch.cuda.memory_allocated(), ctypes.CDLL(None).movie_phantom_violations()]))
        """,
        lag=100,
        seed=5,
        timeout=120,
    )
    assert said == [0, 0]


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("pass", 0),
        ("sys.exit(3)", 3),
        ("raise RuntimeError('of the program')", 1),
        ("os._exit(4)", 4),
        ("torch.empty(1 << 45, device='cuda')", 1),
        ("atexit.register(lambda: torch.ones(10, device='cuda'))", 0),
        ("threading.Thread(target=some, daemon=True).start(); time.sleep(0.2)", 0),
        ("recorded()", 0),
    ],
)
def test_ends(end, code):
    program = f"""
import atexit, os, sys, threading, time

class Late:
    held = torch.ones(100, device="cuda")
    def __del__(self):
        self.more = None

def some():
    Late.more = [torch.empty(1000, device="cuda") for _ in range(10)]
    time.sleep(100)

def recorded():
    torch.cuda.memory._record_memory_history()
    Late.other = torch.ones(10, device="cuda")

late = Late()
kept = [torch.ones(1 << 20, device="cuda") for _ in range(4)]
sys.modules["somebody"] = late
{end}
"""
    result = run_under_movie(program, timeout=60)
    assert result.returncode == code, result.stderr[-2000:]
    for word in ("Segmentation", "terminate", "Aborted", "Exception ignored"):
        assert word not in result.stderr


def test_an_allocation_while_the_interpreter_has_gone():
    """Tensors of C++ statics are freed after Python is."""
    result = run_under_movie(
        """
        import ctypes
        address = torch.cuda.caching_allocator_alloc(1 << 20)
        storage = torch.ones(1 << 20, device="cuda").untyped_storage()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(storage))
        """,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr[-2000:]
