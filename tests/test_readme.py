"""What the README and the documentation show, run as written."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_python_examples_run_and_say_what_they_print():
    table, text = blocks("README.md", "python")
    names: dict = {}
    exec(table, names)  # the reader would paste it too
    model, data = names["model"], names["data"]
    assert model.predict(data.data[:3]).tolist() == ["malignant"] * 3
    assert 1 <= model.n_selected_ <= 30
    exec(text, names)
    model = names["model"]
    assert model.families_[0][0].name == "poisson"
    assert model.path_.mean_accuracy.max() > 0.85


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


def test_the_streams_how_to_runs():
    from maxdisc.testing import random_data

    X, codes = random_data("poisson", 200, 2, 6)
    words = np.array(["ham", "spam"])[codes]
    names = {
        "batches": lambda: [(X[i : i + 40], words[i : i + 40]) for i in range(0, 200, 40)],
        "X_recent": X[-100:],
        "y_recent": words[-100:],
    }
    by_batches, by_rows, _ = blocks("docs/how-to/streams.md", "python")
    exec(by_batches, names)
    assert names["model"].score(X, words) > 0.6
    exec(by_rows, names)
    assert names["model"].score(X, words) > 0.6
