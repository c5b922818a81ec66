"""`movie doctor` as a user has it."""

import json

from command_line import movie

from movie import __version__


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
