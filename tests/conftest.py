"""What all tests share: how thorough they are, compiled code for all workers, and where the data is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).resolve().parent
#: What only `make test-all` runs, because it is not about the library itself.
ONLY_IN_ALL = ("benchmarks", "docs", "experiments", "release")

# Workers, who inherit this, would have more threads of BLAS than there are cores; these wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# `--hypothesis-profile=thorough` is what `make test-all` gives.
for profile, n_examples in (("quick", 25), ("thorough", 100)):
    settings.register_profile(
        profile,
        max_examples=n_examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("quick")


def examples(number: int) -> settings:
    """Settings of a law that wants this many examples in a thorough run; a quick one takes a quarter."""
    return settings(max_examples=max(5, number * settings.default.max_examples // 100))


# A shell that starts the tests in the background has them, and what they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Compile once before workers start: each of them would compile the same."""
    if getattr(config.option, "numprocesses", None) and not config.option.collectonly:
        subprocess.run([sys.executable, HERE / "compile_kernels.py"], check=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--third", type=int, choices=(1, 2, 3), help="run every third of the tests, from this one on"
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what only `make test-all` runs by its folder or data, and what shares an engine by its file."""
    elsewhere = item.path.is_relative_to(HERE) and item.path.relative_to(HERE).parts[0] in ONLY_IN_ALL
    # Few machines have the paper's data.
    if elsewhere or "paper_data" in getattr(item, "fixturenames", ()):
        item.add_marker("whole")
    if item.path.name in ("test_dask.py", "test_page.py", "test_spark.py"):
        item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run a third, of what is left after `-m`, if that is asked for."""
    if (third := config.getoption("--third")) is not None:
        kept = items[third - 1 :: 3]
        chosen = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = kept


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """The folder of the paper's data sets; without it tests skip, except where CI promises it."""
    folder = Path(os.environ.get("MAXDISC_DATA") or HERE.parents[1] / "shared" / "data")
    if not folder.is_dir():
        say = pytest.fail if os.environ.get("MAXDISC_REQUIRE_DATA") else pytest.skip
        say("needs the paper's data sets: set MAXDISC_DATA to their folder")
    return folder
