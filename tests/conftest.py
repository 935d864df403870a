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
#: What `make test-all` may do otherwise: with extras, in scikit-learn's array checks, with more examples that
#: are not hypothesis's. (What skips without an extra has not passed.)
DIFFERS_IN_ALL = {
    *("adapters", "engines", "files", "rows", "serve", "test_doctor.py", "test_estimator_checks.py"),
    *("test_forged_files.py", "test_hostile_files.py"),
}

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
    if config.option.write_passed and not hasattr(config, "workerinput"):
        config.pluginmanager.register(PassedTests(config.option.write_passed))


class PassedTests:
    """Write the names of the tests that pass to a file."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("w", encoding="utf-8", buffering=1)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.file.write(f"{report.nodeid}\n")

    def pytest_unconfigure(self) -> None:
        self.file.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--third", type=int, choices=(1, 2, 3), help="run every third of the tests, from this one on"
    )
    parser.addoption("--write-passed", type=Path, metavar="FILE", help="write the names of tests that pass")
    parser.addoption(
        "--not-again",
        type=Path,
        metavar="FILE",
        help="leave out what passed by this file, unless it takes random examples or may do otherwise",
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what only `make test-all` runs by its folder or data, and what shares an engine by its file."""
    elsewhere = item.path.is_relative_to(HERE) and item.path.relative_to(HERE).parts[0] in ONLY_IN_ALL
    # Few machines have the paper's data.
    if elsewhere or "paper_data" in getattr(item, "fixturenames", ()):
        item.add_marker("whole")
    if item.path.name in ("test_dask.py", "test_page.py", "test_spark.py"):
        item.add_marker(pytest.mark.xdist_group(item.path.stem))


def repeats(item: pytest.Item, passed: set[str]) -> bool:
    """Return whether a test that passed in `make test` would show the same once more in `make test-all`."""
    takes_examples = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return item.nodeid in passed and not takes_examples and DIFFERS_IN_ALL.isdisjoint(item.path.parts)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of what is left after `-m`, leave out what has passed before, and run a third, if that is asked for."""
    kept = items
    if (path := config.getoption("--not-again")) is not None:
        passed = set(path.read_text(encoding="utf-8").splitlines())
        kept = [item for item in kept if not repeats(item, passed)]
    if (third := config.getoption("--third")) is not None:
        kept = kept[third - 1 :: 3]
    if kept is not items:
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
