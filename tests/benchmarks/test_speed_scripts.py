"""The benchmarks of speed and growth run to their end at small sizes; how fast they are is no test."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def run(script, *arguments, **more):
    command = [sys.executable, str(BENCHMARKS / f"{script}.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout


def cells(table):
    """Lines of a table on the terminal, below its headings."""
    return [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if " | " in line][1:]


def numbers_of(lines):
    """All ratios; there is one on every line that is not told to be absent."""
    return [float(line[4].removesuffix(" x")) for line in lines if "not " not in line[-1]]


def stored():
    return {path.name: path.read_bytes() for path in (BENCHMARKS / "results").iterdir()}


def test_small_rows_of_speed_have_finite_numbers_and_store_nothing():
    before = stored()
    lines = cells(run("speed", "--quick", "--only", "sums-S", "path", "dense-moments"))
    assert {"class sums of CSR, both moments, S, 2 threads"} < {line[0] for line in lines}
    ratios = numbers_of(lines)
    assert len(ratios) == len(lines) == 6
    assert np.isfinite(ratios).all()
    assert min(ratios) > 0
    assert stored() == before


def test_what_can_be_run_is_listed():
    names = run("speed", "--list").split()
    assert {"sums-S", "sums-B", "fit", "text", "stream", "dask", "growth"} <= set(names)


@pytest.fixture
def exponent(monkeypatch):
    """The function that takes slopes; scripts import each other by their bare names."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("scaling").exponent


SIZES = [10, 20, 40, 80, 160, 320, 640]


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7])
def test_a_power_is_found_again(exponent, power):
    sizes, slope = exponent(SIZES, [1e-3 * size**power for size in SIZES])
    assert slope == pytest.approx(power)
    assert set(sizes) >= set(SIZES[-4:])


def test_what_does_not_grow_does_not_hide_the_slope(exponent):
    """A constant as large as the work at a size in the middle flattens the whole line, not its upper part."""
    times = [80.0 + size for size in SIZES]
    sizes, slope = exponent(SIZES, times)
    assert sizes == SIZES[3:]
    assert slope > np.polyfit(np.log(SIZES), np.log(times), 1)[0] + 0.1


@pytest.mark.parametrize("change", [3, 5, 6])
def test_a_slope_is_never_taken_across_a_change_of_method(exponent, change):
    """Quadratic before and after; the fall between them would make it look linear."""
    times = [float(size**2) for size in SIZES]
    times[change:] = [time / 50 for time in times[change:]]
    sizes, slope = exponent(SIZES, times)
    assert set(sizes) <= set(SIZES[change:]) or set(sizes) <= set(SIZES[:change])
    assert slope == pytest.approx(2.0)


@pytest.mark.slow
@pytest.mark.usefixtures("paper_data")
def test_all_rows_of_speed_run_at_small_sizes():
    before = stored()
    lines = cells(run("speed", "--quick"))
    assert np.isfinite(numbers_of(lines)).all()
    assert not [line for line in lines if "not run" in line[-1]]
    assert len({line[0] for line in lines if line[0]}) >= 18
    assert stored() == before


@pytest.mark.slow
def test_growth_at_small_sizes_has_an_exponent_for_every_axis(tmp_path):
    before = stored()
    out = run("scaling", "--quick", "--json", tmp_path / "scaling.json")
    record = json.loads((tmp_path / "scaling.json").read_text(encoding="utf-8"))
    assert list(record["axes"]) == ["N", "nnz", "D", "C", "K"]
    for axis in record["axes"].values():
        for work, times in axis["seconds"].items():
            assert min(times) > 0
            assert np.isfinite(axis["fits"][work]["exponent"])
            assert len(axis["fits"][work]["sizes"]) >= 2
    assert len(re.findall(r"exponent +-?\d", out)) == 10
    assert stored() == before
