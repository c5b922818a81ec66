"""What tests of all kinds share."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A machine that is busy with other things makes no test fail.
settings.register_profile("movie", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("movie")

_ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of recorded traces: MOVIE_DATA, else ../shared/data beside the repository.

    Without it a test is skipped; under CI=true it fails, so that a run without data cannot pass for a whole one.
    """
    path = Path(os.environ.get("MOVIE_DATA", _ROOT.parent / "shared" / "data"))
    if not (path / "INDEX.tsv").is_file():
        reason = f"no recorded traces at {path}: set MOVIE_DATA to their folder"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path
