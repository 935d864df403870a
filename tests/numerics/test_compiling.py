"""Where machine code is kept: by the sources of all kernels and the version of numba."""

from __future__ import annotations

import gc
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.core import event

import maxdisc
from maxdisc.numerics import compiling

INNER = "from maxdisc.numerics.compiling import inlined\n\n@inlined\ndef step(x):\n    return x + {step}\n"
OUTER = """
from maxdisc.numerics.compiling import kernel
from maxdisc.numerics.compiled_inner import step

@kernel
def walked(x):
    return step(x)
"""
CALL = "from maxdisc.numerics.compiled_outer import walked; print(walked(1), walked.stats.cache_hits)"


@pytest.fixture
def package(tmp_path):
    """A copy of the package, with a kernel that inlines a function of another file."""
    source = Path(maxdisc.__file__).parent
    copy = tmp_path / "maxdisc"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "numerics" / "compiled_outer.py").write_text(OUTER)
    return copy


def test_compilation_is_counted_once_and_timed(monkeypatch):
    monkeypatch.setattr(compiling, "cache_folder", lambda: None)

    @compiling.kernel
    def doubled(x):
        return 2 * x

    count, seconds = compiling.compiled_so_far()
    assert doubled(2) == 4
    assert compiling.compiled_so_far()[0] == count + 1
    assert compiling.compiled_so_far()[1] > seconds
    now = compiling.compiled_so_far()
    assert doubled(3) == 6
    assert compiling.compiled_so_far() == now


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_while_kernels_are_compiled(monkeypatch, enabled):
    monkeypatch.setattr(compiling, "cache_folder", lambda: None)
    seen = []

    class Passes(event.Listener):
        def on_start(self, _event):
            seen.append(gc.isenabled())

        def on_end(self, _event):
            pass

    def unknown(x):
        return x.has_no_such_attribute

    @compiling.kernel
    def doubled(x):
        return 2 * x

    (gc.enable if enabled else gc.disable)()
    try:
        with event.install_listener("numba:run_pass", Passes()):
            assert doubled(2) == 4
            assert gc.isenabled() == enabled
            with pytest.raises(numba.TypingError):
                compiling.kernel(unknown)(2)
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
    assert seen
    assert not any(seen)


def called(package, step, **environment):
    (package / "numerics" / "compiled_inner.py").write_text(INNER.format(step=step))
    return run_in(package, CALL, **environment)


def run_in(package, code, **environment):
    """What a script prints, a number, and whether its machine code came from the cache."""
    # In a folder that is set, copies of the package would push out what is compiled for other tests.
    usual = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment = {
        **usual,
        "PYTHONPATH": str(package.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
    } | environment
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment
    )
    assert found.returncode == 0, found.stderr
    result, hits = found.stdout.split(maxsplit=1)
    return int(result), "(" in hits and hits.strip() != "Counter()"


def test_an_edit_of_an_inlined_function_is_compiled_again(package):
    assert called(package, 1) == (2, False)
    assert called(package, 1) == (2, True)
    assert called(package, 10) == (11, False)
    # Both are kept, so that going back costs nothing.
    assert called(package, 1) == (2, True)


LOOK = """
import numpy as np
from maxdisc.numerics.compiled_inner import element

few = np.arange(10)[:3]  # what is beyond them is there, so that it can be read
try:
    print(element(few, 5), element.stats.cache_hits)
except IndexError as error:
    print(-1, element.stats.cache_hits)
"""
ELEMENT = "from maxdisc.numerics.compiling import kernel\n\n@kernel\ndef element(x, i):\n    return x[i]\n"


def test_code_with_and_without_bounds_checks_is_never_mistaken_for_the_other(package):
    (package / "numerics" / "compiled_inner.py").write_text(ELEMENT)

    def looked(flag):
        return run_in(package, LOOK, NUMBA_BOUNDSCHECK=flag)

    assert looked("0") == (5, False)
    assert looked("1") == (-1, False)  # not what is there without checks
    assert looked("0") == (5, True)
    assert looked("1") == (-1, True)


def test_few_earlier_versions_are_kept(package, tmp_path):
    place = tmp_path / "cache"
    for age in range(compiling.KEPT + 3):
        folder = place / f"maxdisc-0.{age}-abc"
        folder.mkdir(parents=True)
        os.utime(folder, (10**9 - age, 10**9 - age))
    (place / "somebody-elses").mkdir()
    called(package, 1, NUMBA_CACHE_DIR=str(place))
    kept = {folder.name for folder in place.iterdir()}
    assert {f"maxdisc-0.{age}-abc" for age in range(compiling.KEPT)} | {"somebody-elses"} < kept
    assert len(kept) == compiling.KEPT + 2


def test_the_folder_says_which_numba_and_which_sources():
    folder = compiling.cache_folder()
    assert folder is None or folder.name.startswith(f"maxdisc-{numba.__version__}-")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_terminal_is_told_once_that_code_is_compiled(monkeypatch, stream):
    said = stream()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(compiling._announcement, "is_due", True)
    monkeypatch.setattr(compiling, "cache_folder", lambda: None)
    numba.njit(lambda x: x - 1)(1)
    assert said.getvalue() == ""  # somebody else's
    for step in (1, 2):
        assert compiling.kernel(lambda x, step=step: x + step)(1) == 1 + step
    assert said.getvalue().count("\n") == (1 if stream is Terminal else 0)


def test_machine_code_from_the_cache_is_not_announced(package):
    """The second process finds what the first has compiled."""
    terminal = "import sys; sys.stderr.isatty = lambda: True\n"
    outputs = []
    for _ in range(2):
        (package / "numerics" / "compiled_inner.py").write_text(INNER.format(step=1))
        environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        run = [sys.executable, "-c", terminal + CALL]
        outputs.append(
            subprocess.run(run, capture_output=True, text=True, timeout=300, env=environment).stderr
        )
    assert "compiling" in outputs[0]
    assert outputs[1] == ""
