"""Runs: whole files, going on after a kill, several at once, and all methods on small data."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss as oracle_log_loss

import maxdisc
from experiments.__main__ import main
from experiments.methods import METHODS, Outcome
from experiments.records import Key, Record
from experiments.running import Table, expected_calibration_error, judged, keys, log_loss, run
from experiments.tables import TABLES

ROOT = Path(__file__).parents[2]
# These come with the automatic model.
NEW = set() if hasattr(maxdisc, "MaxDiscSearchCV") else {"automatic", "calibrated", "refined"}

SLOW_RUN = """
import sys, time
from pathlib import Path
from experiments import running
from experiments.records import Record

def compute(table, key):
    with open(sys.argv[2], "a") as log:
        log.write(f"{key.row} {key.seed} {key.fold} {key.method}\\n")
    time.sleep(float(sys.argv[3]))
    return {"accuracy": key.fold / 10}

running.SECONDS_BETWEEN_WRITES = 0.0
table = running.Table("toy", "posts", "toy", ("a", "b"), 10, compute)
running.run(table, Record(Path(sys.argv[1])), ["a", "b"], ["m"], [1000], command="toy")
"""


def slow_run(folder, seconds):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-c", SLOW_RUN, str(folder / "toy.json"), str(folder / "log"), str(seconds)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    first = slow_run(tmp_path, 0.1)
    record = Record(tmp_path / "toy.json")
    for _ in range(600):
        if len(record.cells()) >= 3:
            break
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    before = record.cells()  # the file is whole
    assert 3 <= len(before) < 20
    assert slow_run(tmp_path, 0.0).wait() == 0
    after = record.cells()
    assert len(after) == 20
    assert {key: after[key] for key in before} == before
    # Nothing that was in the file is computed again: only the cell that the kill hit can be there twice.
    assert len((tmp_path / "log").read_text().splitlines()) <= 21


def test_runs_side_by_side_keep_each_others_cells(tmp_path):
    record = Record(tmp_path / "t.json")
    for method in ("a", "b"):
        cell = {Key("row", 1000, 0, method): {"accuracy": 0.5}}
        record.add(cell, {"command": method, "date": method, "versions": {}})
    assert {key.method for key in record.cells()} == {"a", "b"}
    assert [r["command"] for r in record.runs()] == ["a", "b"]
    # What is dropped is gone, with the run it came from.
    assert record.drop(["a"]) == 1
    assert {key.method for key in record.cells()} == {"b"}
    assert [r["command"] for r in record.runs()] == ["b"]


def test_a_failing_cell_does_not_end_the_others(tmp_path):
    def compute(_, key):
        if key.fold == 1:
            raise ValueError("one line")
        return {"accuracy": 1.0}

    table = Table("toy", "posts", "toy", ("a",), 3, compute)
    record = Record(tmp_path / "toy.json")
    failed = run(table, record, ["a"], ["m"], [1000])
    assert failed == [(Key("a", 1000, 1, "m"), "ValueError: one line")]
    assert len(record.cells()) == 2


def test_cells_are_every_fold_of_every_repeat_once():
    table = TABLES["genes"]
    found = keys(table, ["colon"], ["svm", "joint"], range(1000, 1005))
    assert len(found) == len(set(found)) == 2 * 5 * 10


def test_log_loss_and_calibration_error():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=4000)
    codes = np.array([rng.choice(3, p=row) for row in p])
    assert log_loss(p, codes) == pytest.approx(oracle_log_loss(codes, p))
    right = p.argmax(axis=1) == codes
    # Probabilities that are true have next to no error; certainty has all that is wrong.
    assert expected_calibration_error(p, right) < 0.05
    assert expected_calibration_error(np.eye(3)[p.argmax(axis=1)], right) == pytest.approx(1 - right.mean())
    assert "ece" not in judged(Outcome(codes), codes)
    assert np.isfinite(log_loss(np.array([[1.0, 0.0]]), np.array([1])))


TEXT_METHODS = [m for m in METHODS["text"] if m not in NEW]
GENE_METHODS = [m for m in METHODS["genes"] if m not in NEW]


@pytest.mark.parametrize(
    ("table", "method"), [("posts", m) for m in TEXT_METHODS] + [("genes", m) for m in GENE_METHODS]
)
@pytest.mark.usefixtures("small_data")
def test_every_method_learns_from_small_data(table, method):
    row = {"posts": "autos / motorcycles", "genes": "colon"}[table]
    cell = TABLES[table].compute(TABLES[table], Key(row, 7, 0, method))
    # There are words, and genes, that tell the classes.
    assert cell["accuracy"] >= 0.75
    json.dumps(cell)


@pytest.mark.parametrize("method", list(METHODS["rankings"]))
@pytest.mark.usefixtures("small_data")
def test_every_text_ranking_finds_the_words_that_tell(method):
    task = TABLES["selection"].task("autos / motorcycles")
    order = METHODS["rankings"][method].function(task.X, task.y, 12)
    assert sorted(order) == list(range(task.X.shape[1]))
    useful = np.asarray(task.X[task.y == 0].sum(axis=0) * task.X[task.y == 1].sum(axis=0)).ravel() == 0
    # Twelve words are of one group only.
    assert useful[order[:3]].all()


@pytest.mark.parametrize("method", list(METHODS["gene_rankings"]))
@pytest.mark.usefixtures("small_data")
def test_every_gene_ranking_finds_the_genes_that_tell(method):
    task = TABLES["gene_selection"].task("colon")
    order = METHODS["gene_rankings"][method].function(task.X, task.y, 10)
    assert sorted(order) == list(range(40))
    # One of the first three may be an uncorrelated gene, for the sake of variety.
    assert np.isin(order[:3], np.arange(5)).sum() >= 2
    assert order[0] < 5


@pytest.mark.usefixtures("small_data")
def test_the_command_line(tmp_path, capsys):
    results = tmp_path / "results"
    asked = [
        "run",
        "genes",
        "--rows",
        "colon",
        "--methods",
        "memd_js",
        "--repeats",
        "1",
        "--first-seed",
        "200",
    ]
    assert main([*asked, "--results", str(results)]) == 0
    alone = Record(results / "genes.json").cells()
    assert len(alone) == 10
    assert {key.seed for key in alone} == {200}
    # Two processes give the same cells, and what is there is not computed again.
    assert main([*asked, "--results", str(tmp_path / "two"), "--jobs", "2"]) == 0
    both = Record(tmp_path / "two" / "genes.json").cells()
    assert {k: c["accuracy"] for k, c in both.items()} == {k: c["accuracy"] for k, c in alone.items()}
    assert main([*asked, "--results", str(results)]) == 0
    assert Record(results / "genes.json").cells() == alone
    assert main([*asked, "--results", str(results), "--again", "memd_js"]) == 0
    assert "dropped 10 cells" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "posts", "--methods", "nothing"], "there is no method 'nothing'"),
        (["run", "nowhere"], "there is no table 'nowhere'"),
        (["run", "posts", "--rows", "x"], "there is no row 'x'"),
        (["run", "posts", "--first-seed", "3"], "say --results FOLDER"),
    ],
)
def test_what_is_unknown_is_said_in_a_line(arguments, said, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_only_public_names_are_used():
    used = set()
    for file in (ROOT / "experiments").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "maxdisc":
                used |= {(node.module, alias.name) for alias in node.names}
    public = {("maxdisc", name) for name in [*maxdisc.__all__, "MaxDiscSearchCV"]}
    assert used <= public | {("maxdisc.decisions.joint", "Joint")}
    assert ("maxdisc", "MaxDiscClassifier") in used
