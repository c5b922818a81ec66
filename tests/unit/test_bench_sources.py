"""What a capture comes from: a change beside it must not make it stale, a change below it must."""

from pathlib import Path

import pytest

import movie
from movie.bench import sources

ROOT = Path(movie.__file__).parent


def test_a_workload_comes_from_what_it_imports_and_from_no_other():
    found = set(sources.sources_of("movie.workloads.rlhf"))
    assert found >= {f"workloads/{name}.py" for name in ("rlhf", "policy", "causal", "models", "batches", "options")}
    assert not found & {"workloads/zero3.py", "workloads/unet.py", "bench/work.py"}


def test_imports_of_packages_and_within_functions_count(tmp_path, monkeypatch):
    for name, text in {
        "a.py": "import movie.b\ndef f():\n    from movie.c import d\n",
        "b.py": "import os, numpy\n",
        "c/__init__.py": "",
        "c/d.py": "from movie.a import f\n",
        "e.py": "",
        "__init__.py": "from movie.e import x\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(sources, "_ROOT", tmp_path)
    assert list(sources.sources_of.__wrapped__("movie.a")) == ["a.py", "b.py", "c/__init__.py", "c/d.py"]


@pytest.mark.parametrize("module", ["movie.capture.program", "movie.workloads.zero3"])
def test_digests_are_those_of_the_files(module):
    for name, digest in sources.sources_of(module).items():
        assert digest == sources.content(ROOT / name)
