"""The pages on weighed evidence, few labels, searching and documents, run as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def figures(text):
    return [float(number) for number in re.findall(r"\d\.\d+", text)]


def test_the_evidence_how_to_says_what_it_prints(capsys):
    (example,), (shown,) = (blocks("docs/how-to/evidence.md", language) for language in ("python", "text"))
    exec(example, {})  # the reader would paste it too
    printed = capsys.readouterr().out
    kinds = [line.split()[0] for line in printed.splitlines()[:3]]
    assert kinds == ["raw", "calibrated", "refined"]
    raw, calibrated, refined = (figures(line)[-1] for line in printed.splitlines()[:3])
    assert refined < calibrated < raw / 3
    # Other versions of the packages have other docstrings.
    for line, told in zip(printed.splitlines()[1:3], shown.splitlines()[1:3], strict=True):
        assert figures(line) == pytest.approx(figures(told), abs=0.06)


def test_the_few_labels_how_to_says_what_it_prints(capsys):
    (example,), (shown,) = (blocks("docs/how-to/few-labels.md", language) for language in ("python", "text"))
    exec(example, {})
    (alone, both), told = figures(capsys.readouterr().out)[:2], figures(shown)[:2]
    assert both > alone
    assert [alone, both] == pytest.approx(told, abs=0.06)


def test_the_search_how_to_says_what_it_prints(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example, own), (shown,) = (blocks("docs/how-to/search.md", language) for language in ("python", "text"))
    names: dict = {}
    exec(example, names)
    printed = capsys.readouterr().out
    assert figures(printed) == pytest.approx(figures(shown), abs=0.03)
    assert printed.splitlines()[-2:][1] == shown.splitlines()[-1]
    assert (names["model"].predict(names["X"]) == names["search"].predict(names["X"])).all()
    exec(own, names)


def test_the_documents_how_to_says_what_it_prints(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "docs/how-to/documents.md"
    (example, own), (shown,) = (blocks(page, language) for language in ("python", "text"))
    names: dict = {}
    exec(example, names)
    assert capsys.readouterr().out == shown
    exec(own, names)
    assert set(names["search"].best_params_) == {"vectorizer__min_df"}
