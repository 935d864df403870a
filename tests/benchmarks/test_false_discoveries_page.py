"""The table of false discoveries is what the stored record says, and the record keeps the promise."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORD = json.loads((ROOT / "benchmarks" / "results" / "false_discoveries.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location(
        "false_discoveries", ROOT / "benchmarks" / "false_discoveries.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_of_the_record(script):
    page = (ROOT / "docs" / "how-to" / "ranking.md").read_text(encoding="utf-8")
    assert script.written(page, RECORD) == page


def test_what_was_not_measured_is_an_empty_cell(script):
    found = {"false": 0.1, "its standard error": 0.01, "power": 0.5}
    run = {"law": "gamma, shape 2", "rows": 60, "replications": 3, "by method": {"rows": found}}
    assert "| gamma, shape 2 | 60 |  | 0.100 ± 0.010 / 0.50 |  |  |" in script.table_of(
        RECORD | {"results": [run]}
    )


def test_rows_keep_their_promise_whatever_the_distribution():
    """At most 0.12 at q = 0.1, but for two standard errors of the measurement."""
    by_rows = [run["by method"]["rows"] for run in RECORD["results"]]
    for found in [*by_rows, *RECORD["by permutation alone"]]:
        assert found["false"] <= 0.12 + 2 * found["its standard error"]
