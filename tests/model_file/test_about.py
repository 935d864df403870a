"""Metadata of model files."""

from __future__ import annotations

from maxdisc.model_file.about import file_names, remembered


def test_values_of_unknown_types_are_dropped():
    about = {"rows": "many", "label": "topic", "sources": ["train.csv"], "text": 5}
    assert remembered(about) == {"label": "topic", "sources": ["train.csv"]}


def test_file_names_have_no_folders():
    assert file_names(["parts/b.csv", "parts/a.csv"]) == ["a.csv", "b.csv"]
