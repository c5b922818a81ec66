"""Python data from pickles and JSON texts of strangers: dicts, lists, tuples, strings, numbers, booleans and None."""

import gc
import io
import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from movie import _core
from movie.trace.source import Source


class _Unpickler(pickle.Unpickler):
    """Admits no globals. The scan has seen to that already: this is the second lock on the same door."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"names the global {module}.{name}")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError("names a persistent object")


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Plain data has no cycles, and looking for some among millions of new objects takes longer than making them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _refuse(source: Source, scan: _core.Scan) -> None:
    if scan.problem:
        raise source.error(f"byte {scan.offset}", scan.problem.decode("utf-8", "backslashreplace"))


def load_pickle(source: Source, data: bytes) -> Any:
    """The value of a pickle that is plain data. Raises TraceError, with the byte, for every other."""
    _refuse(source, _core.scan_pickle(data, depth=source.limits.depth, items=source.limits.items))
    try:
        with io.BufferedReader(io.BytesIO(data), 1 << 16) as file:
            return _Unpickler(file).load()
    except (pickle.UnpicklingError, EOFError, ValueError, OverflowError, MemoryError) as error:
        raise source.error("pickle", f"cannot be loaded: {error or type(error).__name__}") from None


def load_json(source: Source, data: bytes) -> Any:
    """The value of a JSON text in UTF-8. Raises TraceError, with line and column, for every other."""
    _refuse(source, _core.scan_json(data, depth=source.limits.depth, items=source.limits.items))
    try:
        return json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise source.error(f"line {error.lineno} column {error.colno}", f"is not JSON: {error.msg}") from None
    except (ValueError, MemoryError) as error:
        raise source.error("JSON", f"cannot be loaded: {error or type(error).__name__}") from None
