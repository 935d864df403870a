"""Cells of frames, and the schema of their columns."""

from __future__ import annotations

import numpy as np

from maxdisc.families import Gaussian
from maxdisc.rows.frames import Coded, cells_of
from maxdisc.rows.schema import Schema


def test_a_frame_is_split_into_numbers_and_words():
    cells = cells_of(np.array([[1.5, "red"], [None, "blue"]], dtype=object))
    assert cells.kinds.tolist() == [0, 2]
    assert cells.words.tolist() == [["red"], ["blue"]]
    coded = Coded.of(np.array([["red"], [None], ["red"]], dtype=object))
    assert coded.codes.ravel().tolist() == [0, -1, 0]
    assert coded.words.tolist() == ["red"]


def test_categories_become_indicators():
    cells = cells_of(np.array([[1.5, "red"], [2.0, "blue"]], dtype=object))
    schema = Schema.of(cells, [(Gaussian(), np.array([0]))], np.array([1]))
    assert repr(schema.columns) == "Columns(1 gaussian, 1 categorical)"
    assert [part.shape for part in schema.table(cells).parts] == [(2, 1), (2, 2)]
