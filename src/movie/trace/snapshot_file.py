"""Snapshots of torch in the containers that people have them in: pickle, JSON, MemoryViz page, each also packed."""

import re

from movie.trace.format import Format
from movie.trace.memoryviz import pickles_in
from movie.trace.model import Trace
from movie.trace.plain_data import load_json, load_pickle
from movie.trace.snapshot.read import read_snapshot
from movie.trace.source import Source


def _form(source: Source, name: str) -> str:
    return f"torch snapshot ({name}, {source.packed})" if source.packed else f"torch snapshot ({name})"


def _is_pickle(head: bytes) -> bool:
    return re.match(rb"\x80[\x00-\x0f]", head) is not None


def _read_pickle(source: Source) -> list[Trace]:
    return read_snapshot(load_pickle(source, source.data), source.path, _form(source, "pickle"))


def _is_page(head: bytes) -> bool:
    return re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype|html|head|script|!--)", head, re.IGNORECASE) is not None


def _read_page(source: Source) -> list[Trace]:
    traces: list[Trace] = []
    for pickled in pickles_in(source):
        traces += read_snapshot(load_pickle(source, pickled), source.path, _form(source, "MemoryViz page"))
    return traces


def _is_json(head: bytes) -> bool:
    return re.match(rb"(\xef\xbb\xbf)?\s*[\[{]", head) is not None


def _read_json(source: Source) -> list[Trace]:
    return read_snapshot(load_json(source, source.data), source.path, _form(source, "JSON"))


PICKLE = Format("pickle of a torch snapshot", _is_pickle, _read_pickle)
PAGE = Format("page of MemoryViz", _is_page, _read_page)
JSON = Format("JSON of a torch snapshot", _is_json, _read_json)
