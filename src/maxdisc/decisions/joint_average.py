"""Many joint models, one decision: the average of their scores, each as much as it deserves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from maxdisc.decisions.joint import JointDecision, LogTransform
from maxdisc.numerics.matrices import Booleans, Floats, Integers, Matrix, blocks, is_sparse


@dataclass(frozen=True, eq=False)
class LinearForm:
    """Scores linear in ``z = (t(x) - origin) * rate``: ``weights z + baseline``, summed over features."""

    columns: Integers  # (K,)
    origin: Floats  # (K,)
    rate: Floats  # (K,)
    weights: Floats  # (C, K)
    baseline: Floats  # (C, K)
    unit: Floats | None = None  # (K,)

    def standardised(self, X: Matrix) -> Floats:
        """Return rows of X as z, shape (n, K); NaN for a missing cell."""
        values = cells(X, self.columns)
        if self.unit is not None:
            values = LogTransform(self.unit)(values)
        return (values - self.origin) * self.rate

    def between(self, pair: Integers) -> LinearForm:
        """Return the form of some of the classes."""
        return replace(self, weights=self.weights[pair], baseline=self.baseline[pair])


@dataclass(frozen=True, eq=False)
class AveragedDecision:
    """Weighted average of the scores of joint models, as one linear form per transform.

    A score is ``sum_i weight_i trust_i score_i(x)``; terms that belong to no feature are spread evenly over
    all. A row with a missing cell is scored by the best single density, in which missing cells are
    integrated out. So is every row if there are no forms (covariances per class, or classes so far apart
    that terms would cancel).
    """

    columns: Integers  # (K,)
    forms: tuple[LinearForm, ...]
    density: JointDecision
    trust: float
    log_shares: Floats | None = None  # (C,)

    def under(self, prior: Floats) -> AveragedDecision:
        """Return the same decision under another class prior, shape (C,)."""
        with np.errstate(divide="ignore"):
            density = replace(self.density, log_prior=np.log(prior))
        return replace(self, density=density, log_shares=finite(self.log_prior))

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""
        return self.density.n_classes

    @property
    def log_prior(self) -> Floats:
        """Log class probabilities, shape (C,)."""
        return self.density.log_prior

    @cached_property
    def _constant(self) -> Floats:
        """What the forms add to each class whatever the row, shape (C,)."""
        return np.sum([form.baseline.sum(axis=1) for form in self.forms], axis=0)

    @cached_property
    def _alone(self) -> JointDecision:
        """The density, its evidence without the prior."""
        return replace(self.density, log_prior=np.zeros(self.n_classes))

    @property
    def _less(self) -> Floats:
        """What the trust takes from the log prior, shape (C,)."""
        return (self.trust - 1) * (finite(self.log_prior) if self.log_shares is None else self.log_shares)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {int(column): k for k, column in enumerate(self.columns)}

    def _at(self, columns: Integers) -> Integers:
        """Return where some columns are among all."""
        return np.array([self._places[int(column)] for column in columns], dtype=np.intp)

    def apart(self, sparse: bool) -> Booleans:  # noqa: ARG002  # dense or not, all are looked at together
        """Return the features that cannot be scored cell by cell: all, since they are weighed together."""
        return np.ones(len(self.columns), dtype=np.bool_)

    def between(self, pair: Integers) -> AveragedDecision:
        """Return the decision among some of the classes."""
        forms = tuple(form.between(pair) for form in self.forms)
        shares = None if self.log_shares is None else self.log_shares[pair]
        return replace(self, forms=forms, density=self.density.between(pair), log_shares=shares)

    def scores(self, X: Matrix) -> Floats:
        """Return log prior plus evidence, shape (N, C)."""
        out = np.empty((X.shape[0], self.n_classes))
        for rows, some, zs, whole in self._blocks(X):
            evidence = np.empty((len(whole), self.n_classes))
            if whole.any():
                terms = [z[whole] @ form.weights.T for z, form in zip(zs, self.forms, strict=True)]
                evidence[whole] = np.sum(terms, axis=0) + self._constant
            if not whole.all():
                rest = some[~whole]
                there = ~np.isnan(cells(rest, self.density.columns))
                share = there.sum(axis=1, keepdims=True) / max(there.shape[1], 1)
                evidence[~whole] = self.trust * self._alone.scores(rest) + share * self._less
            out[rows] = self.log_prior + evidence
        return out

    def contributions(self, X: Matrix) -> Floats:
        """Return what each kept feature adds to each class's score, shape (N, C, K); 0 for a missing cell."""
        out = np.zeros((X.shape[0], self.n_classes, len(self.columns)))
        places = [self._at(form.columns) for form in self.forms]
        for rows, some, zs, whole in self._blocks(X):
            here = out[rows]
            for z, form, at in zip(zs, self.forms, places, strict=True):
                here[np.ix_(whole, np.arange(self.n_classes), at)] += (
                    form.weights * z[whole][:, None] + form.baseline
                )
            if not whole.all():
                rest, at = some[~whole], self._at(self.density.columns)
                there = ~np.isnan(cells(rest, self.density.columns))
                share = there[:, None] * (self._less / max(there.shape[1], 1))[:, None]
                here[np.ix_(~whole, np.arange(self.n_classes), at)] = (
                    self.trust * self._alone.contributions(rest) + share
                )
        return out

    def _blocks(self, X: Matrix) -> Iterator[tuple[slice, Matrix, list[Floats], Booleans]]:
        """Yield blocks of rows with their z for each form, and which rows are complete."""
        for rows in blocks(X.shape[0], max(len(self.columns), 1)):
            some = X[rows]
            zs = [form.standardised(some) for form in self.forms]
            whole = np.full(some.shape[0], bool(self.forms))
            for z in zs:
                whole &= ~np.isnan(z).any(axis=1)
            yield rows, some, zs, whole


@dataclass(frozen=True, eq=False)
class AveragedEvidence:
    """Members, weights and trusts of an average, with its held-out log-loss and accuracy.

    The average's scores also get the centred log shares of the classes times ``prior_exponent``: held-out
    rows say whether rare classes are scored too low. Weights, trusts and this exponent were fitted on the
    same held-out rows, so both figures are slightly optimistic.
    """

    members: tuple[str, ...]
    weights: Floats  # (M,)
    trusts: Floats  # (M,)
    log_loss: float
    accuracy: float
    n_rows: float
    prior_exponent: float = 0.0

    def __repr__(self) -> str:
        return (
            f"AveragedEvidence({len(self.members)} models, log-loss {self.log_loss:.3f} and accuracy "
            f"{self.accuracy:.3f} on {self.n_rows:.0f} held-out rows)"
        )


def finite(log_prior: Floats) -> Floats:
    """Log probabilities, 0 for a class that cannot be."""
    return np.where(np.isfinite(log_prior), log_prior, 0.0)


def cells(X: Matrix, columns: Integers) -> Floats:
    """Return some columns as dense numbers, shape (n, K)."""
    values = X[:, columns]
    return np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)
