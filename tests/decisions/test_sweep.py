"""Losses of scores times many trusts, with :func:`counted` as oracle."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maxdisc.decisions.sweep import counted, trusted_losses

TRUSTS = (0.002, 0.3, 1.0, 7.0)


@given(
    st.integers(0, 10_000),
    st.integers(2, 5),
    st.sampled_from([1.0, 1e3, 1e8]),
    st.sampled_from([0.0, 0.02]),
    st.booleans(),
)
def test_losses_of_many_trusts_are_those_of_scores_times_each(seed, n_classes, size, doubt, absent):
    rng = np.random.default_rng(seed)
    scores = size * rng.normal(size=(3, 12, n_classes))
    if absent:
        scores[:, :6, 0] = -np.inf  # a class that no training row of the fold had
        scores[0, :3, 1:] = -np.inf
        scores[0, :3, 0] = 0.0  # the only one that a row can have
    labels, weights = rng.integers(0, n_classes, size=12), rng.uniform(0.1, 3.0, size=12)
    due = [counted(trust * scores, labels, weights, doubt)[1] for trust in TRUSTS]
    np.testing.assert_allclose(
        trusted_losses(scores, labels, weights, TRUSTS, doubt), due, rtol=1e-9, atol=1e-12
    )
