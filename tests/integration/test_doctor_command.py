"""`movie doctor` as a user has it."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import movie
from torch_build import require_cuda_torch

from movie import __version__
from movie.torch import bridge as torch_bridge


def test_the_report_is_readable():
    result = movie("doctor")
    assert result.returncode == 0, result.stdout
    assert result.stderr == ""
    assert f"version {__version__}" in result.stdout
    assert "\x1b" not in result.stdout


def test_json_has_a_finding_for_each_subject():
    result = movie("doctor", "--json")
    assert result.returncode == 0
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert document["version"] == __version__
    checks = {check.pop("name"): check for check in document["checks"]}
    assert set(checks) == {
        "python",
        "platform",
        "libraries",
        "native core",
        "allocators",
        "demo recordings",
        "torch",
        "bridge",
        "settings",
        "CUDA driver",
        "phantom card",
    }
    for check in checks.values():
        assert set(check) == {"status", "text", "advice"}
        assert check["status"] in ("ok", "warn")
        assert bool(check["advice"]) == (check["status"] != "ok")
    assert "native" in checks["allocators"]["text"]


def test_a_core_of_another_version_is_found(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import movie._core\nmovie._core.__version__ = '0.0.1'\n")
    result = movie("doctor", PYTHONPATH=str(tmp_path))
    assert result.returncode == 1
    assert "fail" in result.stdout
    assert "version 0.0.1" in result.stdout
    assert "reinstall" in result.stdout


def finding(name: str, **environment: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and what is said of one subject."""
    result = movie("doctor", "--json", **environment)
    return result.returncode, next(each for each in json.loads(result.stdout)["checks"] if each["name"] == name)


def test_settings_of_the_environment_are_shown():
    code, said = finding("settings", MOVIE_POLICY="lean", MOVIE_MEMORY="40GiB")
    assert code == 0
    assert said["status"] == "ok"
    assert said["text"] == "MOVIE_POLICY=lean, MOVIE_MEMORY=40GiB"


@pytest.mark.parametrize(
    ("variables", "part"),
    [
        ({"MOVIE_MEMORY": "lots"}, "'lots' is not a size"),
        ({"MOVIE_OPTIONS": "speed=fast"}, "'speed' is unknown"),
        ({"MOVIE_BRIDGE": "perhaps"}, "'perhaps'"),
    ],
)
def test_settings_that_cannot_be_fail(variables, part):
    code, said = finding("settings", **variables)
    assert code == 1
    assert said["status"] == "fail"
    assert part in said["text"]
    assert next(iter(variables)) in said["advice"]


def test_a_setting_that_nobody_reads_is_named():
    code, said = finding("settings", MOVIE_POLCIY="lean")
    assert code == 0
    assert said["status"] == "warn"
    assert "MOVIE_POLCIY" in said["text"]


def test_the_bridge_is_found_only_where_nobody_else_can_have_changed_it(tmp_path):
    require_cuda_torch()
    cache = str(tmp_path)
    code, said = finding("bridge", XDG_CACHE_HOME=cache)
    assert (code, said["status"]) == (0, "warn")
    assert "not built for torch" in said["text"]
    assert "movie bridge build" in said["advice"]
    code, said = finding("bridge", XDG_CACHE_HOME=cache, MOVIE_BRIDGE="require")
    assert (code, said["status"]) == (1, "fail")

    path = bridge_path(said["text"].split()[4].rstrip(","), cache)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    path.chmod(0o700)
    code, said = finding("bridge", XDG_CACHE_HOME=cache)
    assert (code, said["status"]) == (0, "ok")
    assert str(path) in said["text"]
    path.chmod(0o777)
    code, said = finding("bridge", XDG_CACHE_HOME=cache)
    assert (code, said["status"]) == (0, "warn")
    assert "may change it" in said["text"]


def bridge_path(version: str, cache: str) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", cache)
        return torch_bridge.bridge_path(version)
