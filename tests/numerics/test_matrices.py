"""Matrices, tables of blocks and result frames."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxdisc.numerics.block_matrix import Table, stacked
from maxdisc.numerics.matrices import blocks, canonical, log_sum_exp, on_lines, row_totals


def test_blocks_cover_the_items_in_order():
    assert list(blocks(5, 10, cells=20)) == [slice(0, 2), slice(2, 4), slice(4, 5)]


def test_a_table_on_lines_is_aligned():
    table = on_lines(3, 5)
    assert table.shape == (3, 5)
    assert table.ctypes.data % 64 == 0


def test_canonical_merges_duplicates():
    twice = sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2))
    assert canonical(twice).data.tolist() == [3.0]


def test_log_sum_exp_does_not_overflow():
    found = log_sum_exp(np.log([[1.0, 2.0], [1e300, 1e300]]))
    np.testing.assert_allclose(found, [np.log(3.0), np.log(2.0) + np.log(1e300)], rtol=1e-14)


def test_totals_of_empty_rows_are_zero():
    X = sp.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 4.0, 0.0]]))
    assert row_totals(X, X.data).tolist() == [3.0, 0.0, 4.0]


def test_tables_are_sliced_and_stacked_by_rows():
    table = Table([np.ones((3, 2)), np.zeros((3, 1))], 3)
    assert table[1:].shape == (2, 3)
    assert stacked([table, table[1:]]).shape == (5, 3)
    assert stacked([np.zeros((2, 3)), np.ones((1, 3))]).shape == (3, 3)
