"""What the README and the documentation show, run as written."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from maxdisc.datasets import load_docstrings

ROOT = Path(__file__).resolve().parents[1]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_python_example_runs_and_does_what_it_says():
    (example,) = blocks("README.md", "python")
    names: dict = {}
    exec(example, names)  # the reader would paste it too
    model = names["model"]
    assert model.families_[0][0].name == "poisson"
    assert model.path_.mean_accuracy.max() > 0.85
    assert names["documents"].target[0] in model.classes_
    assert model.score(names["documents"].data, names["documents"].target) > 0.95


def test_the_how_to_of_tables_says_what_it_prints(capsys):
    example, *more = blocks("docs/how-to/tables.md", "python")
    (shown,) = blocks("docs/how-to/tables.md", "text")
    names: dict = {}
    exec(example, names)
    assert capsys.readouterr().out == shown
    for block in more:
        exec(block, names)


def test_three_commands_lead_from_a_csv_to_a_report_and_predictions(tmp_path):
    """Exactly the lines of the README, in a shell."""
    (commands,) = [block for block in blocks("README.md", "sh") if "maxdisc fit train.csv" in block]
    assert len(commands.strip().splitlines()) == 3
    documents = load_docstrings("package")
    parts = np.random.default_rng(0).permutation(len(documents.data))[:900]
    for name, some in (("train", parts[:500]), ("test", parts[500:800]), ("new", parts[800:])):
        with open(tmp_path / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["body", "topic"] if name != "new" else ["body"])
            writer.writerows(
                [documents.data[i], documents.target[i]][: 1 if name == "new" else 2] for i in some
            )
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(["sh", "-ec", commands], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "300" in page
    assert "<svg" in page
    with open(tmp_path / "predictions.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 100
    assert all(row["because"].count(",") == 4 for row in rows)
    right = np.mean([row["label"] == documents.target[i] for row, i in zip(rows, parts[800:], strict=True)])
    assert right > 0.7


def test_make_has_every_target_that_the_pages_name():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md", "pyproject.toml"):
        named = re.findall(r"`?make ([a-z][a-z-]+)`?", (ROOT / page).read_text(encoding="utf-8"))
        assert named or page == "pyproject.toml"
        assert set(named) <= targets, page


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("page", ["docs/how-to/add-a-family.md", "docs/how-to/add-a-divergence.md"])
def test_the_how_tos_include_real_source(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    included = re.findall(r"\{literalinclude\} (\S+)", text)
    assert included
    for target in included:
        assert (ROOT / page).parent.joinpath(target).resolve().exists(), target


def test_the_divergence_of_the_how_to_obeys_the_laws():
    from maxdisc.testing import check_divergence

    example = blocks("docs/how-to/add-a-divergence.md", "python")[0]
    names: dict = {}
    exec(example.split("\nmodel =")[0], names)
    check_divergence(names["largest_gap"], "poisson")


def test_the_discriminative_how_to_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {
        "texts": ["red apple", "fast car", "green apple", "slow car"] * 25,
        "topics": ["fruit", "road"] * 50,
        "codes": np.arange(100) % 3,
    }
    estimator, by_itself = blocks("docs/how-to/discriminative.md", "python")
    exec(estimator, names)
    assert names["load"](tmp_path / "topics.maxdisc").score(names["texts"], names["topics"]) == 1
    exec(by_itself, names)
    assert names["found"].converged
    assert names["found"].weights.min() >= 0


def test_the_streams_how_to_runs():
    from maxdisc.testing import random_data

    X, codes = random_data("poisson", 200, 2, 6)
    words = np.array(["ham", "spam"])[codes]
    names = {
        "batches": lambda: [(X[i : i + 40], words[i : i + 40]) for i in range(0, 200, 40)],
        "X_recent": X[-100:],
        "y_recent": words[-100:],
    }
    texts = [
        " ".join(["cheap pills"] * (1 + i % 3) + ["offer"]) if c else f"dear friend {i % 9}"
        for i, c in enumerate(codes)
    ]
    names["documents"] = lambda: [(texts[i : i + 40], words[i : i + 40]) for i in range(0, 200, 40)]
    by_batches, by_rows, by_texts, _ = blocks("docs/how-to/streams.md", "python")
    exec(by_batches, names)
    assert names["model"].score(X, words) > 0.6
    exec(by_rows, names)
    assert names["model"].score(X, words) > 0.6
    exec(by_texts, names)
    assert names["model"].score(names["words"].transform(texts), words) > 0.9
