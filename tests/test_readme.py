"""What the README and the documentation show, run as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_python_example_runs_and_says_what_it_prints():
    (example,) = blocks("README.md", "python")
    names: dict = {}
    exec(example, names)  # the reader would paste it too
    model, data = names["model"], names["data"]
    assert model.predict(data.data[:3]).tolist() == ["malignant"] * 3
    assert 1 <= model.n_selected_ <= 30


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
    from maxdisc.divergences import pairwise
    from maxdisc.testing import check_divergence

    example = blocks("docs/how-to/add-a-divergence.md", "python")[0]
    names = {"pairwise": pairwise}
    exec(example.split("\nmodel =")[0], names)
    check_divergence(names["largest_gap"], "poisson")
