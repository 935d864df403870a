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
    """Scores linear in ``z = (t(x) - origin) * rate``: ``weights z + baseline``, summed over features.

    Parameters
    ----------
    columns : ndarray of shape (K,)
        The features.
    origin, rate : ndarray of shape (K,)
        As of :class:`maxdisc.decisions.joint.JointDecision`.
    weights, baseline : ndarray of shape (C, K)
        What a feature adds to the score of each class.
    unit : ndarray of shape (K,), optional
        Of the :class:`maxdisc.decisions.joint.LogTransform`; without it features are taken as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.decisions.joint_average import LinearForm
    >>> form = LinearForm(np.array([1]), np.ones(1), np.ones(1), np.array([[-1.0], [1.0]]), np.zeros((2, 1)))
    >>> form.standardised(np.array([[5.0, 3.0]])) @ form.weights.T
    array([[-2.,  2.]])
    """

    columns: Integers
    origin: Floats
    rate: Floats
    weights: Floats
    baseline: Floats
    unit: Floats | None = None

    def standardised(self, X: Matrix) -> Floats:
        """Rows of X as z, shape (n, K); NaN for a missing cell."""
        values = cells(X, self.columns)
        if self.unit is not None:
            values = LogTransform(self.unit)(values)
        return (values - self.origin) * self.rate

    def between(self, pair: Integers) -> LinearForm:
        """The form of some of the classes."""
        return replace(self, weights=self.weights[pair], baseline=self.baseline[pair])


@dataclass(frozen=True, eq=False)
class AveragedDecision:
    """The weighted average of the scores of joint models, as one linear form for each transform.

    A score is ``sum_i weight_i trust_i score_i(x)`` over the models that were averaged; it is kept as the log
    prior plus what each feature adds. What belongs to no feature (how far the models trust in the prior, the
    biases of conditional models) is shared out evenly among all.

    A row with a missing cell is scored by the best single density, in which what is missing is integrated
    out, times its trust; the trust in the prior counts in proportion to the cells that are there. So a
    missing cell says nothing, and a row without any cell has the prior. The same holds for all rows where
    there are no forms: where classes have covariances of their own, or lie so far apart that linear terms
    would cancel, the best density alone decides, with its trust.

    Parameters
    ----------
    columns : ndarray of shape (K,)
        The kept features: those of the forms and of the density, best first.
    forms : tuple of LinearForm
        One for each transform that has weight.
    density : JointDecision
        The best single joint model: what ``score_samples`` and ``sample`` speak of.
    trust : float
        What its scores are multiplied with.
    log_shares : ndarray of shape (C,), optional
        Logs of the shares of the classes in the training rows, in which the models trust, where another prior
        was given.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.decisions.joint_average import AveragedDecision
    >>> from maxdisc.decisions.joint import JointDecision
    >>> density = JointDecision(
    ...     np.array([0]), np.zeros(1), np.ones(1), np.array([[-1.0], [1.0]]), np.ones(1),
    ...     np.zeros((1, 1, 1)), np.log([0.5, 0.5]),
    ... )
    >>> decision = AveragedDecision(np.array([0]), (), density, trust=0.5)
    >>> decision.scores(np.array([[-3.0], [np.nan]])) @ [-1, 1]
    array([-3.,  0.])
    """

    columns: Integers
    forms: tuple[LinearForm, ...]
    density: JointDecision
    trust: float
    log_shares: Floats | None = None

    def under(self, prior: Floats) -> AveragedDecision:
        """The decision of classes with other probabilities beforehand, shape (C,), all else the same."""
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
        """Where some columns are among all."""
        return np.array([self._places[int(column)] for column in columns], dtype=np.intp)

    def apart(self, sparse: bool) -> Booleans:  # noqa: ARG002  # dense or not, all are looked at together
        """The features that cannot be scored cell by cell: all, since they are weighed together."""
        return np.ones(len(self.columns), dtype=np.bool_)

    def between(self, pair: Integers) -> AveragedDecision:
        """The decision among some of the classes."""
        forms = tuple(form.between(pair) for form in self.forms)
        shares = None if self.log_shares is None else self.log_shares[pair]
        return replace(self, forms=forms, density=self.density.between(pair), log_shares=shares)

    def scores(self, X: Matrix) -> Floats:
        """Log prior plus evidence.

        Parameters
        ----------
        X : matrix of shape (N, D)
            Dense, where NaN is a missing cell, or sparse.

        Returns
        -------
        ndarray of shape (N, C)
            Scores whose softmax is the posterior.
        """
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
        """What each kept feature adds to each class's score, shape (N, C, K); 0 for a missing cell."""
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
        """Some rows at a time: which, themselves, their z for each form, and which of them have all cells."""
        for rows in blocks(X.shape[0], max(len(self.columns), 1)):
            some = X[rows]
            zs = [form.standardised(some) for form in self.forms]
            whole = np.full(some.shape[0], bool(self.forms))
            for z in zs:
                whole &= ~np.isnan(z).any(axis=1)
            yield rows, some, zs, whole


@dataclass(frozen=True, eq=False)
class AveragedEvidence:
    """Which models were averaged, and how good the average was on rows that none of them was made from.

    Parameters
    ----------
    members : tuple of str
        The models that have weight, the heaviest first.
    weights : ndarray of shape (M,)
        Theirs; they sum to 1.
    trusts : ndarray of shape (M,)
        What the scores of each are multiplied with.
    log_loss, accuracy : float
        Of the average, on held-out rows. Weights and trusts were found on these rows, so it is a little
        better than on others.
    n_rows : float
        How many rows (of equal weight) were held out, each counted once.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.decisions.joint_average import AveragedEvidence
    >>> AveragedEvidence(("raw, 30 features, shrinkage 1",), np.ones(1), np.array([0.5]), 0.25, 0.9, 60.0)
    AveragedEvidence(1 models, log-loss 0.250 and accuracy 0.900 on 60 held-out rows)
    """

    members: tuple[str, ...]
    weights: Floats
    trusts: Floats
    log_loss: float
    accuracy: float
    n_rows: float

    def __repr__(self) -> str:
        return (
            f"AveragedEvidence({len(self.members)} models, log-loss {self.log_loss:.3f} and accuracy "
            f"{self.accuracy:.3f} on {self.n_rows:.0f} held-out rows)"
        )


def finite(log_prior: Floats) -> Floats:
    """Log probabilities, 0 for a class that cannot be."""
    return np.where(np.isfinite(log_prior), log_prior, 0.0)


def cells(X: Matrix, columns: Integers) -> Floats:
    """Some columns as dense numbers, shape (n, K)."""
    values = X[:, columns]
    return np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)
