"""Trust in a ranking: null distributions against simulation and scipy, false discoveries, stability."""

from __future__ import annotations

import numpy as np
import pytest

from maxdisc.counting import class_moments
from maxdisc.densities import estimate
from maxdisc.divergences import js_gm
from maxdisc.families import FAMILIES
from maxdisc.significance import debiased
from maxdisc.smoothing import Smoothing


def moments_of(name, X, y):
    family = FAMILIES[name]
    return class_moments(family.statistics, X, y, int(y.max()) + 1, powers=family.translates)


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("gaussian", lambda rng, shape: rng.normal(size=shape)),
        ("exponential", lambda rng, shape: rng.exponential(size=shape)),
        ("poisson", lambda rng, shape: rng.poisson(3.0, size=shape).astype(float)),
        ("gamma", lambda rng, shape: rng.gamma(2.0, size=shape)),
    ],
)
def test_luck_gives_as_much_as_is_taken_off(name, draw):
    rng = np.random.default_rng(0)
    for sizes in [(100, 300), (200, 150, 150)]:
        y = np.repeat(np.arange(len(sizes)), sizes)
        X = draw(rng, (len(y), 2000))
        X[rng.random(X.shape) < 0.3] = np.nan
        moments = moments_of(name, X, y)
        densities = estimate(FAMILIES[name], moments, Smoothing(0.0))
        scores, n = js_gm(densities), moments.cells.sum(axis=0)
        lucky = FAMILIES[name].n_statistics * (len(sizes) - 1)
        assert (scores / densities.coverage * n).mean() == pytest.approx(lucky, rel=0.1)
        # The scores of a model are those of observed rows times their share: what is taken off shrinks alike.
        assert debiased(scores, FAMILIES[name].n_statistics, len(sizes), len(y)) == pytest.approx(
            densities.coverage
            * debiased(scores / densities.coverage, FAMILIES[name].n_statistics, len(sizes), n)
        )


def test_nothing_is_left_of_what_nobody_saw():
    assert debiased([0.5], 1, 2, [0]).tolist() == [0.0]
    assert debiased([0.0, 1.0], 2, 1, 10).tolist() == [0.0, 1.0]
