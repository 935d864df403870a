"""The page of performance is what the stored records say, misses included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAMP = {
    "command": "make bench",
    "date": "2026-01-02",
    "python": "3",
    "versions": {"numpy": "2"},
    "cores": 2,
    "load_average": 0.5,
}


def written(docs, results=ROOT / "benchmarks" / "results"):
    """The page that the command makes of some records."""
    command = [sys.executable, str(ROOT / "benchmarks" / "performance_page.py")]
    subprocess.run([*command, "--results", str(results), "--docs", str(docs)], check=True)
    return (docs / "performance.md").read_text(encoding="utf-8")


def comparison(other, figure, role, sense, bound):
    goal = None if sense is None else {"sense": sense, "bound": bound}
    return {"other": other, "figure": figure, "role": role, "goal": goal, "absent": ""}


def put(folder, *rows):
    record = {"command": "make bench", "rows": {"some": {"measured": STAMP, "rows": rows}}}
    (folder / "speed.json").write_text(json.dumps(record), encoding="utf-8")


def line_of(page, row):
    return next(line for line in page.splitlines() if line.startswith(f"| {row} |"))


def test_the_page_is_what_its_generator_makes_of_the_stored_records(tmp_path):
    """After a new record: python benchmarks/performance_page.py."""
    assert written(tmp_path) == (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("sense", "bound", "outcome"),
    [
        ("at most", 2.0, "met"),
        ("at most", 1.9, "**missed**"),
        ("at least", 0.5, "met"),
        ("at least", 0.6, "**missed**"),
        (None, None, ""),
    ],
)
def test_each_sense_of_a_goal_is_judged_by_its_own_ratio(sense, bound, outcome, tmp_path):
    """Ours takes twice as long: 2 of ours to the other's, a half of the other's to ours."""
    put(tmp_path, {"what": "it", "ours": 2.0, "comparisons": [comparison("peer", 1.0, "peer", sense, bound)]})
    line = line_of(written(tmp_path / "docs", tmp_path), "it")
    assert line.split(" | ")[-1].removesuffix("|").strip() == outcome
    assert ("2 x" if sense == "at most" else "0.5 x") in line


def test_what_the_record_claims_of_itself_is_computed_anew(tmp_path):
    """A goal edited in the record, or a ratio, does not leave its old verdict behind."""
    entry = comparison("floor", 1.0, "floor", "at most", 3.0) | {"ratio": 1.0, "met": True}
    put(tmp_path, {"what": "it", "ours": 9.0, "comparisons": [entry]})
    page = written(tmp_path / "docs", tmp_path)
    assert "**missed**" in line_of(page, "it")
    assert "0 goals are met, 1 are missed." in page


def test_rows_that_were_not_run_say_why(tmp_path):
    put(tmp_path, {"what": "it", "ours": None, "comparisons": [], "skipped": "no data"})
    page = written(tmp_path / "docs", tmp_path)
    assert "not run: no data" in line_of(page, "it")
    assert "1 rows were not run" in page
