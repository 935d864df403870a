"""Formats, cells and runs of rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from maxdisc.files import Batch, SourceError, nearest, recut
from maxdisc.files.byte_streams import decoded
from maxdisc.files.cells import categories, parsed, share_of_numbers
from maxdisc.files.places import format_of_content, format_of_name


def test_text_is_parsed_as_numbers_or_not_at_all():
    assert parsed(pa.array(["1", " 2.5e3", "", "n/a", "True"])).to_pylist() == [1.0, 2500.0, None, None, 1.0]
    assert parsed(pa.array(["1", "two"])) is None
    assert share_of_numbers(pa.array(["1", "2.5e3", "", "about 3", "-4"])) == 0.75


def test_categories_are_stripped_text():
    assert categories(pa.array([" red", "n/a", "3"]), "colour", str).to_pylist() == ["red", None, "3"]
    assert categories(pa.array([3.0, None, 0.5]), "code", str).to_pylist() == ["3", None, "0.5"]


def test_the_format_follows_from_the_name_or_the_content():
    assert format_of_name(Path("train.tsv.gz")) == "tsv"
    assert format_of_name(Path("notes.txt")) is None
    assert format_of_content(b"+1 3:0.5 9:2") == "svmlight"
    assert format_of_content(b"a,b") == "csv"
    assert format_of_content(b'{"a": 1}') == "jsonl"
    assert format_of_content(b"Dear Sir, I write to you", text_columns=["body"]) == "lines"


def test_an_invalid_byte_is_named_with_its_place():
    with pytest.raises(
        SourceError, match=r"^menu.csv row 2: byte 0xe9 is not UTF-8: try --encoding latin-1.$"
    ):
        decoded("café".encode("latin-1"), "menu.csv row 2")


def test_the_closest_column_is_suggested():
    assert nearest("topci", ["body", "topic"]) == ": did you mean 'topic'?"


def test_runs_do_not_depend_on_the_files():
    table = pa.table({"size": [1, 2, 3, 4, 5]})
    halves = [Batch(table.slice(0, 2), "a.csv", 1), Batch(table.slice(2), "b.csv", 1)]
    runs = [[piece.where(0) for piece in run] for run in recut(halves, most_rows=3)]
    assert runs == [["a.csv row 1", "b.csv row 1"], ["b.csv row 2"]]
