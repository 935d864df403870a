"""Pages are written from records alone, and hide nothing."""

from __future__ import annotations

import re

import numpy as np
import pytest

from experiments.pages import bold_best, write_pages
from experiments.paper import TEXT_TABLE, TEXT_TASKS
from experiments.records import Key, Record

RUN = {
    "command": "python -m experiments run posts",
    "date": "2026-01-02T03:04:05",
    "versions": {"numpy": "2"},
}


def put(folder, name, cells):
    Record(folder / f"{name}.json").add(cells, RUN)


def accuracies(method, by_row, seed=0):
    """Five repeats of two folds about a mean for each row, in percent."""
    rng = np.random.default_rng(seed)
    return {
        Key(row, 1000 + repeat, fold, method): {
            "accuracy": mean / 100 + 0.002 * rng.normal(),
            "seconds": 1.0,
            "log_loss": 0.25,
            "ece": 0.031,
        }
        for row, mean in by_row.items()
        for repeat in range(5)
        for fold in range(2)
    }


@pytest.fixture
def posts(tmp_path):
    """Ahead everywhere, but for a small loss on one row and a clear one on another."""
    ours = dict.fromkeys(TEXT_TASKS, 99.5) | {"talk": 96.0, "comp": 80.0}
    theirs = dict.fromkeys(TEXT_TASKS, 95.0) | {"talk": 96.1, "comp": 90.0}
    put(tmp_path, "posts", accuracies("default", ours, 1))
    put(tmp_path, "posts", accuracies("linear_svc", theirs, 2))
    put(tmp_path, "posts", accuracies("memd_j", ours, 3))
    return tmp_path


def line_of(page, row):
    return next(line for line in page.splitlines() if line.startswith(f"| {row} |"))


def test_lost_rows_are_shown_as_lost(posts, tmp_path):
    out = tmp_path / "pages"
    write_pages(posts, out)
    page = (out / "text-posts.md").read_text()
    assert line_of(page, "sci").endswith("| ahead |")
    assert line_of(page, "talk").endswith("| lost |")
    assert line_of(page, "comp").endswith("| **lost, significant** |")
    assert "At or above the best on 9 of 11 rows, 1 significant losses." in page
    assert (out / "text-posts.md").exists()
    assert (out / "posts.svg").read_text().lstrip().startswith("<?xml")


def test_the_papers_figures_seeds_and_command_are_there(posts, tmp_path):
    write_pages(posts, tmp_path / "pages")
    page = (tmp_path / "pages" / "text-posts.md").read_text()
    figures = page[page.index("## The paper's figures") :]
    for row, columns in TEXT_TABLE.items():
        assert f"{columns['SVM']:.2f}" in line_of(figures, row)
    assert "1000, 1001, 1002, 1003, 1004" in page
    assert f"`{RUN['command']}`" in page
    # Its best beside ours: the paper's figure is the bar where it is higher than the competitor's here.
    assert "97.35" in line_of(page, "autos / motorcycles")


def test_the_same_record_gives_the_same_pages(posts, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    names = [path.name for path in write_pages(posts, first)]
    write_pages(posts, second)
    for name in [*names, "posts.svg"]:
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_what_was_not_run_has_no_page(posts, tmp_path):
    write_pages(posts, tmp_path / "pages")
    assert not (tmp_path / "pages" / "genes.md").exists()
    index = (tmp_path / "pages" / "index.md").read_text()
    assert "text-posts" in index
    assert "genes" not in index


def test_without_the_default_nothing_is_claimed(tmp_path):
    put(tmp_path, "posts", accuracies("linear_svc", dict.fromkeys(TEXT_TASKS, 95.0)))
    write_pages(tmp_path, tmp_path / "pages")
    page = (tmp_path / "pages" / "text-posts.md").read_text()
    assert "was not run yet" in page
    assert "ahead" not in page


def test_methods_with_fewer_repeats_are_named(posts, tmp_path):
    some = {
        key: cell
        for key, cell in accuracies("dme", dict.fromkeys(TEXT_TASKS, 90.0)).items()
        if key.seed < 1002
    }
    put(posts, "posts", some)
    write_pages(posts, tmp_path / "pages")
    assert "Repeats: 5, but fewer for DME (2)." in (tmp_path / "pages" / "text-posts.md").read_text()


def test_the_paper_is_not_compared_where_the_data_differ(tmp_path):
    for method, value in (("default", 90.0), ("svm", 80.0)):
        put(tmp_path, "genes", accuracies(method, {"gcm": value, "colon": value}))
    write_pages(tmp_path, tmp_path / "pages")
    page = (tmp_path / "pages" / "genes.md").read_text()
    assert "(66.98)" in line_of(page, "gcm")
    assert "86.40" in line_of(page, "colon")
    assert "(86.40)" not in page


@pytest.mark.usefixtures("posts")
def test_selection_stability_paths_and_calibration(tmp_path):
    sizes = (10, 30)
    for method, value in (("redundancy", 0.8), ("js_gm", 0.7), ("chi2", 0.75)):
        cells = {
            Key("talk", 1000, fold, method): {
                "accuracy": {"naive Bayes": {str(k): value + k / 1000 for k in sizes}},
                "seconds": 1.0,
            }
            for fold in range(2)
        }
        put(tmp_path, "selection", cells)
        stable = {"nogueira": {"10": value}, "jaccard": {"10": value / 2}, "seconds": 1.0}
        put(tmp_path, "stability", {Key("talk", 1000, 0, method): stable})
    path = {"accuracy": {"0.01": 0.8, "0.1": 0.89, "1.0": 0.9}, "features": 1000, "seconds": 1.0}
    put(tmp_path, "paths", {Key("talk", 1000, 0, "raw"): path})
    out = tmp_path / "pages"
    write_pages(tmp_path, out)
    selection = (out / "selection.md").read_text()
    assert "| K=10 | js_gm, redundancy 1 | chi2 | +5.00 | +5.00 |  |  | ahead |" in selection
    assert "**81.00**" in selection
    assert "| chi2 | 0.75 | 0.38 |" in (out / "stability.md").read_text()
    assert "| Poisson, raw | 1.00 | 10.00 |" in (out / "accuracy-against-k.md").read_text()
    # Lower is better, and nothing is in bold by mistake.
    calibration = (out / "calibration.md").read_text()
    assert re.search(r"\| mean \|.* 3.10 ", calibration)
    for figure in ("selection.svg", "accuracy-against-k.svg"):
        assert (out / figure).stat().st_size > 1000


def test_the_best_is_bold_and_so_are_its_equals():
    assert bold_best(["1.00", "", "2.00", "2.00"]) == ["1.00", "", "**2.00**", "**2.00**"]
    assert bold_best(["", ""]) == ["", ""]
