"""Sums that add, and keep their digits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxdisc import Smoothing
from maxdisc.densities.class_densities import estimate
from maxdisc.families import FAMILIES, Beta, Gamma, Gaussian, Poisson
from maxdisc.moments.class_moments import ClassMoments, merged
from maxdisc.moments.counting import class_moments


def moments(X, codes, n_classes=2, weights=None, family=None):
    family = family or Gaussian()
    return class_moments(family.statistics, X, codes, n_classes, weights, powers=family.translates)


def variances(m):
    return m.centred()[1][1] / m.cells


def exact_variances(X, codes, n_classes=2):
    """Two passes in extended precision."""
    X = X.astype(np.longdouble)
    return np.array([((X[codes == c] - X[codes == c].mean(0)) ** 2).mean(0) for c in range(n_classes)])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("apart", [0.0, 1.0, 1e6], ids=["same place", "near", "a million sd apart"])
@pytest.mark.parametrize("seed", range(3))
def test_variance_keeps_its_digits_for_any_chunks_and_order(dtype, apart, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, 300)
    # float32 cannot hold 1e6 sd with detail; what matters is that its own values are summed right.
    X = (1e6 + apart * codes[:, None] + rng.normal(size=(300, 5))).astype(dtype)
    if dtype == np.float32:
        X = (X - np.float32(1e6)) * np.float32(2**-20) + np.float32(1.0)
    expected = exact_variances(X, codes)
    cuts = np.sort(rng.choice(300, 12))
    parts = [moments(X[a:b], codes[a:b]) for a, b in zip(np.r_[0, cuts], np.r_[cuts, 300], strict=True)]
    for order in (range(len(parts)), rng.permutation(len(parts)), [*range(len(parts))][::-1]):
        merged = ClassMoments.total(parts[i] for i in order)
        np.testing.assert_allclose(variances(merged), expected.astype(float), rtol=1e-9)
    densities = estimate(Gaussian(), moments(X, codes), Smoothing(0.0))
    np.testing.assert_allclose(-0.5 / densities.natural[1], expected.astype(float), rtol=1e-9)


def test_single_rows_as_chunks():
    rng = np.random.default_rng(0)
    X = 1e6 + rng.normal(size=(50, 2))
    codes = np.arange(50) % 2
    merged = ClassMoments.total(moments(X[i : i + 1], codes[i : i + 1]) for i in rng.permutation(50))
    np.testing.assert_allclose(variances(merged), exact_variances(X, codes).astype(float), rtol=1e-9)


@given(
    hnp.arrays(np.float64, (12, 3), elements=st.integers(0, 2**40).map(float)),
    hnp.arrays(np.intp, 12, elements=st.integers(0, 2)),
    st.permutations(range(12)),
    st.integers(1, 11),
)
def test_integer_sums_are_exact_for_any_order_and_cut(X, codes, order, cut):
    whole = moments(X, codes, 3, family=Poisson())
    order = np.array(order)
    a = moments(X[order[:cut]], codes[order[:cut]], 3, family=Poisson())
    b = moments(sp.csr_array(X[order[cut:]]), codes[order[cut:]], 3, family=Poisson())
    np.testing.assert_array_equal((a + b).sums, whole.sums)
    np.testing.assert_array_equal((b + a).nonzero, whole.nonzero)


def test_rest_is_not_a_subtraction():
    # One class holds 1e17 of the mass; what remains without it must be exactly the rest.
    X = np.array([[1e17], [1.0], [2.0]])
    rest = moments(X, np.arange(3), 3, family=Poisson()).rest()
    assert rest.sums[0, 0, 0] == 3.0
    gaussian = moments(np.array([[1e9], [1.0], [2.0], [4.0]]), np.array([0, 1, 1, 2]), 3).rest()
    np.testing.assert_allclose(variances(gaussian)[0, 0], np.var([1.0, 2.0, 4.0]), rtol=1e-12)


@given(st.integers(1, 9), st.sampled_from(["poisson", "gaussian"]), st.booleans(), st.integers(0, 999))
def test_rest_is_the_moments_of_the_other_rows(n_classes, name, gaps, seed):
    rng = np.random.default_rng(seed)
    # Some classes have no rows, some no observed cell.
    codes = rng.integers(0, n_classes, 15)
    X = rng.integers(0, 2**30, (15, 3)).astype(float)
    if gaps:
        X[rng.random(X.shape) < 0.4] = np.nan
    rest = moments(X, codes, n_classes, family=FAMILIES[name]).rest()
    assert rest.sums.shape == (FAMILIES[name].n_statistics, n_classes, 3)
    for c in range(n_classes):
        others = moments(X[codes != c], np.zeros((codes != c).sum(), np.intp), 1, family=FAMILIES[name])
        assert rest.weight[c] == others.weight[0]
        np.testing.assert_array_equal(
            np.broadcast_to(rest.cells, (n_classes, 3))[c], np.broadcast_to(others.cells, (1, 3))[0]
        )
        if name == "poisson":
            np.testing.assert_array_equal(rest.sums[:, c], others.sums[:, 0])
        else:
            for mine, theirs in zip(rest.centred(), others.centred(), strict=True):
                np.testing.assert_allclose(
                    mine[..., c, :], theirs[..., 0, :], rtol=1e-12, atol=1e-12 * 2.0 ** (30 * (mine.ndim - 1))
                )


@pytest.mark.parametrize("n_classes", [10, 1000])
def test_rest_takes_few_steps_for_many_classes(n_classes, monkeypatch):
    steps = []
    monkeypatch.setattr("maxdisc.moments.class_moments.merged", lambda a, b: steps.append(a) or merged(a, b))
    m = moments(np.random.default_rng(0).normal(size=(n_classes, 2)), np.arange(n_classes), n_classes)
    m.rest()
    assert len(steps) <= 3 * np.ceil(np.log2(n_classes))
    assert sum(len(cells) for cells, _, _ in steps) <= 3 * n_classes


def test_rest_of_a_class_without_rows_far_from_zero():
    X = 1e200 + np.zeros((4, 1))
    rest = moments(X, np.array([0, 0, 1, 1]), 2).reindexed(np.array([0, 3]), 6).rest()
    np.testing.assert_array_equal(rest.weight, [2, 4, 4, 2, 4, 4])
    np.testing.assert_array_equal(rest.sums, np.zeros((2, 6, 1)))
    np.testing.assert_array_equal(rest.origin, X[:1].repeat(6, axis=0))


@given(st.data())
def test_missing_cells_contribute_no_weight(data):
    name = data.draw(st.sampled_from(["gaussian", "poisson", "gamma", "beta", "hurdle"]))
    family = FAMILIES[name]
    X = data.draw(hnp.arrays(np.float64, (10, 3), elements=st.floats(0.05, 0.95)))
    mask = data.draw(hnp.arrays(np.bool_, (10, 3)))
    codes = np.arange(10) % 2
    m = moments(np.where(mask, np.nan, X), codes, family=family)
    for j in range(3):
        seen = ~mask[:, j]
        alone = moments(X[seen][:, [j]], codes[seen], family=family)
        np.testing.assert_array_equal(np.broadcast_to(m.cells, (2, 3))[:, j], alone.weight)
        if family.translates:
            np.testing.assert_allclose(m.centred()[0][:, j], alone.centred()[0][:, 0], rtol=1e-12)
            np.testing.assert_allclose(m.centred()[1][:, :, j], alone.centred()[1][:, :, 0], atol=1e-12)
        else:
            np.testing.assert_allclose(m.sums[:, :, j], alone.sums[:, :, 0], rtol=1e-12, atol=1e-14)


def test_nothing_missing_gives_bit_identical_moments_on_both_paths():
    rng = np.random.default_rng(0)
    X, codes = rng.gamma(2.0, size=(40, 4)), rng.integers(0, 2, 40)
    for family in (Gaussian(), Poisson(), Gamma()):
        plain = moments(X, codes, family=family)
        row = np.full((1, 4), np.nan)
        with_gap = moments(np.vstack([X, row]), np.r_[codes, 0], family=family)
        np.testing.assert_array_equal(plain.sums, with_gap.sums)
        assert plain.observed is None


@given(
    hnp.arrays(np.float64, (8, 2), elements=st.floats(-1e3, 1e3)),
    hnp.arrays(np.float64, (8, 3), elements=st.floats(0, 1)),
)
def test_soft_labels_are_weights(X, shares):
    soft = moments(X, shares, 3)
    for c in range(3):
        hard = moments(X, np.zeros(8, dtype=np.intp), 1, weights=shares[:, c])
        np.testing.assert_allclose(soft.weight[c], hard.weight[0], rtol=1e-12)
        np.testing.assert_allclose(soft.centred()[0][c], hard.centred()[0][0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(soft.centred()[1][1, c], hard.centred()[1][1, 0], rtol=1e-9, atol=1e-7)


def test_reindexing_moves_classes_and_scaling_is_weighting():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(20, 3)), np.arange(20) % 2
    m = moments(X, codes)
    moved = m.reindexed(np.array([2, 0]), 3)
    np.testing.assert_array_equal(moved.weight, [10, 0, 10])
    np.testing.assert_array_equal(moved.sums[:, 2], m.sums[:, 0])
    np.testing.assert_array_equal(moved.origin[0], m.origin[1])
    weighted = moments(X, codes, weights=np.where(codes == 0, 3.0, 0.5))
    np.testing.assert_allclose(m.scaled([3.0, 0.5]).weight, weighted.weight)
    np.testing.assert_allclose(variances(m.scaled([3.0, 0.5])), variances(weighted), rtol=1e-12)


def test_shapes_that_do_not_match_are_refused():
    a = ClassMoments.zero(1, 2, 3)
    with pytest.raises(ValueError, match="do not add"):
        _ = a + ClassMoments.zero(1, 2, 4)


def test_sparse_input_is_never_made_dense():
    # 2,000 x 3,000,000 would be 48 GB.
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 2000, 6000), rng.integers(0, 3_000_000, 6000)
    X = sp.csr_array((rng.random(6000), cells), shape=(2000, 3_000_000))
    m = moments(X, np.arange(2000) % 2, family=Poisson())
    np.testing.assert_allclose(m.sums.sum(), X.sum())


def test_memory_maps_and_fortran_order(tmp_path):
    rng = np.random.default_rng(0)
    X, codes = rng.beta(2, 3, size=(30, 4)), np.arange(30) % 2
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for family in (Gaussian(), Beta()):
        base = moments(X, codes, family=family)
        for other in (mapped, np.asfortranarray(X)):
            np.testing.assert_array_equal(moments(other, codes, family=family).sums, base.sums)
