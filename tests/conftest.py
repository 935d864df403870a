"""What all tests share: where the paper's data is, and how hypothesis runs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "maxdisc", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("maxdisc")

# A shell that starts the tests in the background has them, and what they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """The folder of the paper's data sets; without it tests skip, except where CI promises it."""
    here = Path(__file__).resolve()
    folder = Path(os.environ.get("MAXDISC_DATA") or here.parents[2] / "shared" / "data")
    if not folder.is_dir():
        say = pytest.fail if os.environ.get("MAXDISC_REQUIRE_DATA") else pytest.skip
        say("needs the paper's data sets: set MAXDISC_DATA to their folder")
    return folder
