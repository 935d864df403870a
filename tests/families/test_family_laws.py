"""Every law on every member of the registries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxdisc.divergences.class_divergences import DIVERGENCES
from maxdisc.families import FAMILIES, Family, Gaussian, Geometric, Poisson, find_family
from maxdisc.rows import BatchRows
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.testing import check_divergence, check_family, check_moments, check_rows

families = pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))
seeds = pytest.mark.parametrize("seed", range(4))


@families
@seeds
def test_family(family: Family, seed: int) -> None:
    check_family(family, seed)


@families
@seeds
def test_moments(family: Family, seed: int) -> None:
    check_moments(family, seed)


@families
@pytest.mark.parametrize("name", DIVERGENCES)
@seeds
def test_divergence(name: str, family: Family, seed: int) -> None:
    check_divergence(DIVERGENCES[name], family, seed)


def in_batches(X, codes, n_classes):
    return BatchRows(lambda: [(X[i : i + 7], codes[i : i + 7]) for i in range(0, len(codes), 7)], n_classes)


def sparse_rows(X, codes, n_classes):
    return ArrayRows(sp.csr_array(X), codes, n_classes)


@families
@pytest.mark.parametrize("make", [ArrayRows, in_batches], ids=["array", "batches"])
def test_rows(make, family: Family) -> None:
    check_rows(make, family)


@pytest.mark.parametrize("name", ["poisson", "geometric", "exponential", "hurdle", "gaussian", "bernoulli"])
def test_sparse_rows(name: str) -> None:
    check_rows(sparse_rows, name)


class WrongGradient(Poisson):
    def mean(self, natural):
        return 2 * np.exp(natural)


class WrongPartition(Geometric):
    def log_partition(self, natural):
        return super().log_partition(natural) + 0.1 * natural[0] ** 2


class WrongSampler(Gaussian):
    def sample(self, natural, rng):
        return super().sample(natural, rng) + 0.5


class WrongEntropy(Poisson):
    def entropy(self, natural):
        return Family.entropy(self, natural)


class AcceptsAnything(Poisson):
    def require(self, X, names=None):
        pass


@pytest.mark.parametrize(
    "broken", [WrongGradient, WrongPartition, WrongSampler, WrongEntropy, AcceptsAnything]
)
def test_the_laws_can_fail(broken: type[Family]) -> None:
    with pytest.raises(AssertionError):
        check_family(broken())


@pytest.mark.parametrize(
    "broken",
    [
        lambda d: d.mean[0, 0],
        lambda d: d.mean[0].sum(axis=0) * 0 + 1,
        lambda d: -DIVERGENCES["js_gm"](d),
        lambda d: DIVERGENCES["js_gm"](d).cumsum(),
        lambda d: DIVERGENCES["js_gm"](d)[:-1],
    ],
    ids=["one class only", "constant", "negative", "features interact", "wrong shape"],
)
def test_the_laws_of_divergences_can_fail(broken) -> None:
    with pytest.raises(AssertionError):
        check_divergence(broken)


def test_the_laws_of_rows_can_fail() -> None:
    def forgetful(X, codes, n_classes):
        return ArrayRows(X[:-1], codes[:-1], n_classes)

    with pytest.raises(AssertionError):
        check_rows(forgetful)


def test_families_are_values() -> None:
    assert Poisson() == Poisson()
    assert Poisson() != Geometric()
    assert len({Poisson(), Poisson(), Geometric()}) == 2
    assert find_family(Poisson()) == find_family("poisson")
