"""Fits on the partitions of an engine."""

from __future__ import annotations

from functools import reduce

from maxdisc import MaxDiscClassifier
from maxdisc.engines.partitioned_fit import Labelled, fit_labelled
from maxdisc.rows.partitions import entrywise


class Here:
    partitions = (Labelled([[0.0], [1.0]], ["ham"] * 2), Labelled([[5.0], [6.0]], ["spam"] * 2))

    def added(self, job):
        return reduce(entrywise, map(job, self.partitions))


def test_a_model_is_fitted_to_partitions():
    model = MaxDiscClassifier("gaussian", n_features="all", smoothing=1.0, evidence="raw")
    assert fit_labelled(model, Here()).predict([[0.5], [5.5]]).tolist() == ["ham", "spam"]
