"""Counts and totals of terms."""

from __future__ import annotations

import numpy as np

from maxdisc.words.counting import Counts, WordRule, stacked
from maxdisc.words.vocabulary import TermTotals


def test_counts_are_stacked_and_some_terms_dropped():
    counts = Counts(np.array([0, 2, 3]), np.array([0, 1, 2]), np.array([5, 6, 7]))
    found = stacked([counts, counts], np.array([1, 0, -1]), 2)
    assert found.toarray().tolist() == [[6, 5], [0, 0], [6, 5], [0, 0]]


def test_totals_of_two_parts_add():
    rule = WordRule(r"(?u)\b\w\w+\b", True, frozenset(), (1, 1))
    both = TermTotals.of(["to be or not to be"], rule) + TermTotals.of(["to do"], rule)
    assert dict(zip(both.terms, both.n_times.tolist(), strict=True)) == {
        "be": 2,
        "do": 1,
        "not": 1,
        "or": 1,
        "to": 3,
    }
