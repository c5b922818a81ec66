"""What a test needs and this machine may lack."""

import os
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """Skips the test; under CI=true it fails, so that a run without what tests need cannot pass for a whole one."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
