"""What tests of all kinds share."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from missing import missing

# A machine that is busy with other things makes no test fail.
settings.register_profile("movie", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("movie")

# A shell lets what it starts in the background ignore interrupts, and the programs that tests start would do so too.
for _number, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)

_ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of recorded traces: MOVIE_DATA, else ../shared/data beside the repository.

    Without it a test is skipped; under CI=true it fails, so that a run without data cannot pass for a whole one.
    """
    path = Path(os.environ.get("MOVIE_DATA", _ROOT.parent / "shared" / "data"))
    if not (path / "INDEX.tsv").is_file():
        missing(f"no recorded traces at {path}: set MOVIE_DATA to their folder")
    return path
