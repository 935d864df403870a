"""Rows without labels: expectation-maximisation, by the moments and the densities that labelled rows have.

Each unlabelled row belongs to every class with the probability that the model gives it, and the model is made
from the labelled rows and these soft labels, until neither changes. With the features and the pseudo-rows of
smoothing fixed, each step raises the penalised log-likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from maxdisc.calibration.evidence import Evidence
from maxdisc.decisions.linear import LinearDecision
from maxdisc.densities.class_densities import LEAST_SPREAD, class_prior
from maxdisc.families import Family
from maxdisc.families.blocks import AnyFamily, AnyMoments, Columns, MixedMoments
from maxdisc.moments.class_moments import ClassMoments, merged, recentred
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.block_matrix import Table
from maxdisc.numerics.matrices import Booleans, Floats, Integers, Matrix
from maxdisc.rows.row_sources import ALWAYS_TRAINING, LEFT_OUT, ArrayRows, FixedFolds, Folds
from maxdisc.selection.fold_models import Choice, FoldModels

#: EM stops when a step moves less than this share of the rows from one class to another, ...
LEAST_CHANGE = 0.001
#: ... (for models that are only tried on folds, less will do) ...
LEAST_CHANGE_ON_FOLDS = 0.01
#: ... or after so many steps.
MOST_STEPS = 100
#: Unlabelled rows are used if held-out rows are better off by more standard errors than this. A single row,
#: however large its loss, comes to exactly one: it never decides alone.
SURE = 1.0
#: A row belongs to no class with less than this.
LEAST_SHARE = 1e-14


@dataclass(frozen=True, eq=False)
class UnlabelledRows:
    """Rows without labels, with weights and the row numbers for messages."""

    X: Matrix  # (N, D)
    weights: Floats  # (N,)
    numbers: Integers  # (N,)
    names: npt.ArrayLike | None = None

    def __len__(self) -> int:
        return len(self.weights)

    def select(self, kept: Booleans) -> UnlabelledRows:
        """Some of the rows; no copy if these are all."""
        if kept.all():
            return self
        return replace(self, X=self.X[kept], weights=self.weights[kept], numbers=self.numbers[kept])

    def shared_out(self, model: Mixture, weight: float) -> tuple[ArrayRows, float]:
        """The rows with soft labels, each weighing ``weight`` times as much, and their log-likelihood.

        The labels are the posterior probabilities of a model; the likelihood leaves out what depends on
        the rows alone.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scores = model.scores(self.X)
        lost = ~np.isfinite(scores.max(axis=1))
        if lost.any():
            raise ValueError(
                f"row {self.numbers[np.argmax(lost)]} has no label, and values too far from all labelled "
                "rows to be given one: drop it."
            )
        top = scores.max(axis=1)
        shares = np.exp(scores - top[:, None])
        total = shares.sum(axis=1)
        shares /= total[:, None]
        shares[shares < LEAST_SHARE] = 0.0
        weights = weight * self.weights
        likelihood = float(weights @ (top + np.log(total)))
        return ArrayRows(self.X, shares, len(model.log_prior), weights, self.names), likelihood


@dataclass(frozen=True, eq=False)
class Mixture:
    """Densities of all classes, block by block, and log class probabilities (C,)."""

    parts: Sequence[LinearDecision]
    log_prior: Floats  # (C,)

    def scores(self, X: Matrix) -> Floats:
        """Log prior plus evidence, shape (N, C)."""
        out = np.tile(self.log_prior, (X.shape[0], 1))
        for part, cells in zip(self.parts, X.parts if isinstance(X, Table) else [X], strict=True):
            if len(part.columns):
                out += replace(part, log_prior=np.zeros(len(self.log_prior))).scores(cells)
        return out

    def log_likelihood(self, moments: Sequence[ClassMoments]) -> float:
        """Of labelled rows, of whose features these are the moments; without their base measure."""
        weight = moments[0].weight
        known = weight > 0
        total = float(weight[known] @ self.log_prior[known])
        for part, own in zip(self.parts, moments, strict=True):
            sums = own.sums
            if part.family.translates:
                about = 0.0 if own.origin is None else own.origin
                sums = recentred(own.cells, sums, about - part.origin)
            cells = np.broadcast_to(own.cells, part.baseline.shape)
            total += float(
                np.einsum("lcd,lcd", part.weights, sums) - np.einsum("cd,cd", part.baseline, cells)
            )
        return total


@dataclass(frozen=True, eq=False)
class SoftMoments:
    """Result of EM: moments with soft labels, and the penalised log-likelihood of each step."""

    moments: AnyMoments
    objective: Floats  # (I,)
    converged: bool

    @property
    def n_iter(self) -> int:
        """I, the number of steps."""
        return len(self.objective)


@dataclass(frozen=True, eq=False)
class Penalty:
    """Fixed pseudo-rows of smoothing, which make each EM step the maximum of one function.

    The function is the log-likelihood of labelled rows, unlabelled rows and, for each class and feature,
    ``number`` pseudo-rows with mean statistics ``mean``. Where statistics are powers of x, these rows are
    centred at the class's own mean, as in :func:`maxdisc.densities.class_densities.estimate`.
    """

    family: Family
    smoothing: Smoothing
    columns: Integers  # (K,)
    number: Floats  # (K,)
    mean: Floats  # (L, K)
    level: Floats  # (K,)

    @classmethod
    def of(cls, family: Family, smoothing: Smoothing, moments: ClassMoments) -> Penalty:
        """As these moments have it. The pooled means of rows do not depend on who belongs to which class."""
        every = np.arange(moments.n_features)
        telling = LinearDecision.of(family, moments, smoothing, every).weights.any(axis=(0, 1))
        columns, level = np.flatnonzero(telling), smoothing.level(moments)
        chosen = moments.select(columns)
        center, sums = chosen.centred() if family.translates else (None, chosen.sums)
        pseudo = smoothing.pseudo_rows(chosen, sums, level)
        mean, middle = np.array(pseudo.mean), np.zeros(len(columns))
        if center is not None:
            # Variances within classes do depend on it, so they stay what they are now.
            share = chosen.cells / np.maximum(chosen.cells.sum(axis=0), np.finfo(np.float64).tiny)
            middle = (share * center).sum(axis=0)
            spread = (share * (center - middle) ** 2).sum(axis=0)
            mean[1] = np.maximum(mean[1], LEAST_SPREAD * (mean[1] + spread))
        return cls(family, smoothing, columns, np.array(pseudo.number), mean, middle)

    def decision(self, moments: ClassMoments, prior: Floats | None) -> LinearDecision:
        """The decision that maximises the function, if unlabelled rows keep the soft labels they have."""
        if not self.family.translates:
            return LinearDecision.of(self.family, moments, self.smoothing, self.columns, prior)
        chosen = moments.select(self.columns)
        pseudo = self.rows_of(chosen)
        assert pseudo.observed is not None
        sums, origin = merged((chosen.cells, chosen.sums, chosen.origin), (pseudo.observed, *_where(pseudo)))
        both = replace(chosen, sums=sums, origin=origin, observed=chosen.cells + pseudo.observed)
        every = np.arange(len(self.columns))
        found = LinearDecision.of(self.family, both, Smoothing(0.0), every, prior)
        return replace(found, columns=self.columns)

    def rows_of(self, moments: ClassMoments) -> ClassMoments:
        """The pseudo-rows of every class."""
        cells = np.broadcast_to(self.number, moments.sums.shape[1:])
        translates = self.family.translates
        center = np.where(moments.cells > 0, moments.means(), self.level) if translates else None
        weight = np.zeros(moments.n_classes)
        return ClassMoments(weight, cells * self.mean[:, None, :], center, cells)


def _where(moments: ClassMoments) -> tuple[Floats, Floats | None]:
    return moments.sums, moments.origin


def _blocks(family: AnyFamily, moments: AnyMoments) -> list[tuple[Family, ClassMoments]]:
    """The families and the moments of blocks of columns; one, where all have one family."""
    if isinstance(family, Columns):
        assert isinstance(moments, MixedMoments)  # both are of one table
        return [(block.family, part) for block, part in zip(family.blocks, moments.parts, strict=True)]
    assert isinstance(moments, ClassMoments)
    return [(family, moments)]


@dataclass(frozen=True, eq=False)
class Penalties:
    """The pseudo-rows of every block."""

    family: AnyFamily
    parts: Sequence[Penalty]

    @classmethod
    def of(cls, family: AnyFamily, smoothing: Smoothing, moments: AnyMoments) -> Penalties:
        """As these moments have it: see :meth:`Penalty.of`."""
        return cls(family, [Penalty.of(own, smoothing, m) for own, m in _blocks(family, moments)])

    def model(self, moments: AnyMoments, prior: Floats | None) -> Mixture:
        """The model that maximises the penalised likelihood, if rows keep the soft labels they have."""
        own = _blocks(self.family, moments)
        with np.errstate(divide="ignore"):
            log_prior = np.log(class_prior(moments, prior))
        return Mixture([p.decision(m, prior) for p, (_, m) in zip(self.parts, own, strict=True)], log_prior)

    def select(self, moments: AnyMoments) -> list[ClassMoments]:
        """Moments of the features that count, block by block."""
        own = _blocks(self.family, moments)
        return [m.select(p.columns) for p, (_, m) in zip(self.parts, own, strict=True)]

    def worth(self, model: Mixture, moments: AnyMoments) -> float:
        """The log-likelihood of the pseudo-rows of classes with these moments."""
        own = zip(self.parts, self.select(moments), strict=True)
        return model.log_likelihood([penalty.rows_of(m) for penalty, m in own])


def expectation_maximisation(
    known: AnyMoments,
    rows: UnlabelledRows,
    weight: float,
    family: AnyFamily,
    smoothing: Smoothing,
    prior: Floats | None = None,
    least_change: float = LEAST_CHANGE,
    most_steps: int = MOST_STEPS,
) -> SoftMoments:
    """Fit labelled and unlabelled rows together by EM; return soft moments.

    The pseudo-rows of smoothing are fixed by the first soft labels, those of the labelled rows alone.
    """
    if prior is not None:
        # A class that no labelled row has would be any cluster.
        prior = np.where(known.weight > 0, prior, 0.0)
        prior = prior / prior.sum() if prior.any() else None
    soft, _ = rows.shared_out(Penalties.of(family, smoothing, known).model(known, prior), weight)
    moments = _total(known, soft, family)
    penalties = Penalties.of(family, smoothing, moments)
    labelled, last = penalties.select(known), moments
    objective: list[float] = []
    converged = False
    while not converged and len(objective) < most_steps:
        model = penalties.model(moments, prior)
        after, likelihood = rows.shared_out(model, weight)
        value = likelihood + model.log_likelihood(labelled) + penalties.worth(model, moments)
        if objective and not value >= objective[-1]:
            # Only rounding is left; or no density has these moments, and what was taken is no maximum.
            converged = True
            break
        objective.append(value)
        moved = np.abs(after.labels - soft.labels).sum(axis=1) @ rows.weights / (2 * rows.weights.sum())
        converged, last = bool(moved <= least_change), moments
        if not converged:
            soft, moments = after, _total(known, after, family)
    return SoftMoments(last, np.array(objective), converged)


def _total(known: AnyMoments, soft: ArrayRows, family: AnyFamily) -> AnyMoments:
    # Moments of either kind add to their own kind.
    return known + cast(Any, soft.moments(cast(Family, family))[0])


@dataclass(frozen=True, eq=False)
class PartlyLabelledModels(FoldModels):
    """Models of every fold from its labelled training rows and unlabelled rows.

    EM runs anew for each fold, so no soft label depends on a held-out label.
    """

    whole: SoftMoments | None = None

    def total(self) -> AnyMoments:
        """The moments of all rows, by their labels or soft labels."""
        assert self.whole is not None
        return self.whole.moments


@dataclass(frozen=True, eq=False)
class PartlyLabelled:
    """Labelled and unlabelled rows, with the folds of both."""

    labelled: ArrayRows
    others: UnlabelledRows
    plans: Sequence[tuple[Folds, Integers]]
    smoothing: Smoothing

    def weights(self) -> list[float]:
        """What unlabelled rows may weigh: as much as labelled ones, or less the more there are of them.

        The second is half-way, by ratio, to where all of them together weigh no more than the labelled ones.
        """
        rows = self.labelled
        known = float(len(rows.labels) if rows.weights is None else rows.weights.sum())
        ratio = min(1.0, known / float(self.others.weights.sum()))
        return sorted({1.0, float(np.sqrt(ratio))}, reverse=True)

    def models(self, models: FoldModels, weight: float) -> PartlyLabelledModels:
        """Models like these, which also learn from unlabelled rows of some weight."""
        family, prior = models.family, models.prior
        plans: list[Folds] = []
        parts: list[Any] = []
        for folds, beside in self.plans:
            own = self.labelled.dealt(folds)
            for fold in range(folds.count):
                plan = np.where(own == LEFT_OUT, LEFT_OUT, np.where(own == fold, 0, ALWAYS_TRAINING))
                plans.append(FixedFolds(plan, 1))
                held, known = self.labelled.moments(cast(Family, family), plans[-1])
                some = self.others.select((beside != fold) & (beside != LEFT_OUT))
                parts.append(
                    [
                        _light(held),
                        self._soft(family, known, some, weight, prior, LEAST_CHANGE_ON_FOLDS).moments,
                    ]
                )
        whole = self._soft(family, self.labelled.moments(cast(Family, family))[0], self.others, weight, prior)
        given = (self.labelled, family, models.divergence, prior, plans, parts, models.redundancy)
        return PartlyLabelledModels(*given, whole)

    def _soft(
        self,
        family: AnyFamily,
        known: AnyMoments,
        others: UnlabelledRows,
        weight: float,
        prior: Floats | None,
        least_change: float = LEAST_CHANGE,
    ) -> SoftMoments:
        if not known.weight.any() or not len(others):
            return SoftMoments(known, np.empty(0), True)
        return expectation_maximisation(known, others, weight, family, self.smoothing, prior, least_change)


def _light(moments: AnyMoments) -> AnyMoments:
    """Moments of which only weights will be asked; zeros that nobody touches take no memory."""
    if isinstance(moments, MixedMoments):
        return replace(moments, parts=[cast(ClassMoments, _light(part)) for part in moments.parts])
    return replace(ClassMoments.zero(*moments.sums.shape), weight=moments.weight, squares=moments.squares)


@dataclass(frozen=True, eq=False)
class Held:
    """Held-out loss of a model: mean, and by row or fold."""

    loss: float
    parts: Floats  # (n,)
    weights: Floats  # (n,)

    @classmethod
    def of(cls, choice: Choice, evidence: Evidence | None) -> Held:
        """The log-loss of weighed evidence; else, as raw probabilities mean little, minus the accuracy."""
        if evidence is not None and evidence.by_row is not None:
            return cls(evidence.log_loss, evidence.by_row.losses, evidence.by_row.weights)
        path = choice.path
        assert path is not None
        at = min(int(np.searchsorted(path.sizes, choice.size)), len(path.sizes) - 1)
        return cls(-float(path.mean_accuracy[at]), -path.accuracy[:, at], path.weight)

    def ahead_of(self, other: Held) -> float:
        """By how many standard errors this loss is less than another's; minus infinity if not comparable.

        The same rows are judged by both, so it is the differences that vary.
        """
        if len(self.parts) != len(other.parts):
            return -np.inf
        share = self.weights / self.weights.sum()
        freedom = 1 - share @ share  # with equal weights, 1 - 1 / n
        apart = other.parts - self.parts
        spread = share**2 @ (apart - share @ apart) ** 2
        gain = other.loss - self.loss
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(
                np.nan_to_num(gain * np.sqrt(freedom / spread), nan=0.0, posinf=np.inf, neginf=-np.inf)
            )

    def beats(self, other: Held) -> bool:
        """Whether this loss is less by more than noise."""
        return self.ahead_of(other) > SURE + 1e-9
