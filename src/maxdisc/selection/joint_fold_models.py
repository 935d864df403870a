"""Joint models tried on folds: transform, covariance, shrinkage and number of features, chosen together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from maxdisc.decisions.joint import (
    POOLED,
    Joint,
    JointDecision,
    JointSample,
    JointTrial,
    LogTransform,
    Shrinkage,
    cross_fitted_order,
    weighing_one,
)
from maxdisc.decisions.linear import ranked_decision
from maxdisc.decisions.sweep import Sweep
from maxdisc.divergences.class_divergences import Divergence, FeatureRanking
from maxdisc.families import Gaussian
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.counting import Membership
from maxdisc.moments.products import ClassProducts, observed_means
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Floats, Integers, Matrix, is_sparse
from maxdisc.rows.row_sources import LEFT_OUT, ArrayRows, BatchRows, FixedFolds, Folds, Rows, row_hashes
from maxdisc.selection.fold_models import Rule, SelectionPath, size_grid

#: Shrinkages that "auto" tries.
TRIED: tuple[float, ...] = (0.02, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
#: What scores are multiplied with, the least log-loss being taken; 1 is the model as it is.
TRUSTS: tuple[float, ...] = (*np.geomspace(0.005, 0.5, 10).tolist(), 1.0)
#: How much a nat of log-loss weighs against accuracy where models are compared.
LOSS_COUNTS = 0.5
#: Up to so many rows in memory, a model is made from their residuals; beyond, from products of features,
#: of which there are then at most MOST_COLUMNS.
FEW_ROWS = 2048
MOST_COLUMNS = 2048
#: Residuals take at most so many cells.
MOST_CELLS = 2**26
#: Samples of all folds are kept while they take at most so many cells (64 MB), with half as many for moments.
MOST_KEPT = 2**23
#: Greedy search chooses among the best so many by their own divergence,
SEARCH_POOL = 512
#: ... with this shrinkage, unless one is given.
SEARCH_SHRINKAGE = 0.3


@dataclass(frozen=True, eq=False)
class JointChoice:
    """Choices made before the final joint fit: joint parameters, number of features and path."""

    joint: Joint
    size: int
    path: SelectionPath | None = None


@dataclass(frozen=True, eq=False)
class JointModels:
    """Joint models of all rows, and of the training rows of every fold."""

    rows: Rows
    joint: Joint
    divergence: Divergence
    prior: Floats | None
    smoothing: Smoothing | None
    plans: Sequence[Folds]
    moments: ClassMoments

    def __post_init__(self) -> None:
        if self.joint.transform == "log":
            _ = self.view("log")  # now, so that rows that cannot be transformed are refused at once

    @cached_property
    def _log(self) -> LogTransform:
        return LogTransform.of(self.moments)

    @property
    def largest(self) -> int:
        """The largest number of features that a joint density is made of."""
        if not self.few_rows:
            return min(self.moments.n_features, MOST_COLUMNS)
        assert isinstance(self.rows, ArrayRows)
        return min(self.moments.n_features, max(MOST_COLUMNS, MOST_CELLS // self.rows.X.shape[0]))

    @property
    def sizes(self) -> Integers:
        """The numbers of features that are tried unless one is given."""
        return size_grid(self.largest, n_small=4, ratio=1.6)

    @property
    def few_rows(self) -> bool:
        return isinstance(self.rows, ArrayRows) and self.rows.X.shape[0] <= FEW_ROWS

    def view(self, transform: str | None) -> Rows:
        """Return the rows, transformed."""
        if transform is None:
            return self.rows
        if isinstance(self.rows, ArrayRows):
            return _logged(self.rows, self._log)
        if isinstance(self.rows, BatchRows):
            return _LogBatches(self.rows.batches, self.rows.n_classes, self.rows.names, self._log)
        raise ValueError("this source of rows cannot be transformed: use Joint(transform=None).")

    @cached_property
    def fixed_plans(self) -> list[Folds]:
        """Folds of rows in memory, dealt once for all that is tried."""
        if not isinstance(self.rows, ArrayRows):
            return list(self.plans)
        before = np.full(self.rows.start, LEFT_OUT)
        return [FixedFolds(np.concatenate([before, self.rows.dealt(p)]), p.count) for p in self.plans]

    @property
    def candidates(self) -> list[tuple[str | None, bool]]:
        joint = self.joint
        known = isinstance(self.rows, ArrayRows | BatchRows)
        transforms = ([None, "log"] if known else [None]) if joint.transform == "auto" else [joint.transform]
        covariances = [False, True] if joint.covariance == "auto" else [joint.covariance == "per_class"]
        return [(transform, per_class) for transform in transforms for per_class in covariances]

    def choose(self, sizes: Integers, rule: Rule = "best") -> JointChoice:
        """Try everything that is open on every fold.

        Models are compared by held-out accuracy minus half the log-loss (at the trust in their scores that
        makes it least), averaged with the neighbours in shrinkage and size: of the accuracies of a few dozen
        rows alone, the largest is mostly luck. The rule "one_se" takes the fewest features within one
        standard error of the accuracy chosen.
        """
        shrinkages = self._shrinkages
        tried = [
            (transform, per_class, self._sweeps(transform, per_class, sizes, shrinkages))
            for transform, per_class in self.candidates
        ]
        merits = np.stack([_merit(sweeps) for _, _, sweeps in tried])
        best = np.unravel_index(int(np.argmax(merits >= merits.max() - 1e-12)), merits.shape)
        candidate, a, s = (int(i) for i in best)
        transform, per_class, sweeps = tried[candidate]
        path = SelectionPath.of(
            sizes,
            [Sweep(w.correct[a], w.loss[-1, a], w.weight, w.squares) for w in sweeps],
            self.smoothing or POOLED,
        )
        s = path.fewer(s, rule)
        settled: dict[str, Any] = {
            "covariance": "per_class" if per_class else "shared",
            "shrinkage": shrinkages[a],
            "transform": transform,
        }
        return JointChoice(replace(self.joint, **settled), int(sizes[s]), path)

    @property
    def _shrinkages(self) -> tuple[Shrinkage, ...]:
        return TRIED if self.joint.shrinkage == "auto" else (self.joint.shrinkage,)

    def _sweeps(
        self, transform: str | None, per_class: bool, sizes: Integers, shrinkages: Sequence[Shrinkage]
    ) -> list[Sweep]:
        rows, sweeps = self.view(transform), []
        for folds in self.fixed_plans:
            samples = FoldSamples(self, rows, folds, int(sizes[-1]), per_class, transform)

            def trial_of(fold: int, samples: FoldSamples = samples) -> JointTrial:
                return JointTrial(samples.of(fold)[1], shrinkages, TRUSTS)

            for fold, counted in enumerate(rows.sweep(trial_of, sizes, folds)):
                if counted.weight > 0 and samples.trained(fold):
                    sweeps.append(counted)
        if not sweeps:
            raise ValueError("no fold has both rows to train on and rows held out: choose another cv.")
        return sweeps

    def model(self, choice: JointChoice) -> tuple[FeatureRanking, JointDecision]:
        """Return the ranking and the decision from all the rows."""
        joint = choice.joint
        assert joint.shrinkage != "auto"
        rows = self.view(joint.transform)
        samples = FoldSamples(self, rows, None, choice.size, joint.covariance == "per_class", joint.transform)
        ranking, sample = samples.of(None)
        return ranking, sample.decision(choice.size, joint.shrinkage)


def _merit(sweeps: Sequence[Sweep]) -> Floats:
    """Return how good each (shrinkage, size) is, from all folds, averaged with its neighbours."""
    weight = sum(sweep.weight for sweep in sweeps)
    accuracy = np.sum([sweep.correct for sweep in sweeps], axis=0) / weight
    loss = np.sum([sweep.loss for sweep in sweeps], axis=0).min(axis=0) / weight
    merit = np.asarray(accuracy - LOSS_COUNTS * loss)
    around = np.pad(merit, 1, mode="edge")
    n, m = merit.shape
    return np.mean([around[i : i + n, j : j + m] for i in range(3) for j in range(3)], axis=0)


def _logged(rows: ArrayRows, log: LogTransform) -> ArrayRows:
    """Return the rows transformed, their folds those of the rows as they are."""
    return replace(rows, X=log(rows.X), source=rows.X)


@dataclass(frozen=True, eq=False)
class _LogBatches(BatchRows):
    """Batches, transformed one by one."""

    log: LogTransform | None = None

    def __iter__(self) -> Iterator[ArrayRows]:
        assert self.log is not None
        for batch in super().__iter__():
            yield _logged(batch, self.log)


@dataclass(frozen=True, eq=False)
class _HalfFolds:
    """Each fold in two, by a hash of the row: f becomes 2f and 2f + 1; what is never held out, the last."""

    folds: Folds | None

    @property
    def count(self) -> int:
        return 2 * (1 if self.folds is None else self.folds.count + 1)

    @property
    def leaves_out(self) -> bool:
        return self.folds is not None and self.folds.leaves_out

    def of(self, X: Matrix, start: int) -> Integers:
        half = ((row_hashes(X) >> np.uint64(40)) & np.uint64(1)).astype(np.intp)
        if self.folds is None:
            return half
        fold = self.folds.of(X, start)
        whole = np.where(fold == LEFT_OUT, fold, np.where(fold < 0, self.folds.count, fold))
        return np.where(whole == LEFT_OUT, LEFT_OUT, 2 * whole + half)


@dataclass(frozen=True, eq=False)
class FoldSamples:
    """What the models of every fold (None: of all rows) are made from, each from its training rows alone."""

    models: JointModels
    rows: Rows
    folds: Folds | None
    size: int
    per_class: bool
    transform: str | None
    _totals: dict[int | None, ClassMoments] = field(default_factory=dict, repr=False)
    _made: dict[int | None, tuple[FeatureRanking, JointSample]] = field(default_factory=dict, repr=False)

    @property
    def are_kept(self) -> bool:
        """Whether all of them together take so little memory that none is made twice."""
        n_rows = self.rows.X.shape[0] if isinstance(self.rows, ArrayRows) else self.size
        return self.size * n_rows * len(self._every) <= MOST_KEPT

    def trained(self, fold: int) -> bool:
        """Return whether a fold has training rows."""
        return bool(self._training(fold).weight.any())

    def of(self, fold: int | None) -> tuple[FeatureRanking, JointSample]:
        """Return the ranking by the training rows of a fold, and the sample of its best columns."""
        if fold in self._made:
            return self._made[fold]
        found = self._sampled(fold)
        if self.are_kept:
            self._made[fold] = found
        return found

    def _sampled(self, fold: int | None) -> tuple[FeatureRanking, JointSample]:
        ranking = self._ranking(fold)
        columns, moments = ranking.order[: self.size], self._training(fold)
        given = (self.models.prior, self.models._log.unit if self.transform else None)
        if self.models.few_rows:
            assert isinstance(self.rows, ArrayRows)
            members = self._members(fold)
            X = self.rows.X[members.rows]
            rows = (X, members.groups, members.weights)
            return ranking, JointSample.of_rows(*rows, moments, columns, self.per_class, *given)
        union, parts = self._products
        products = ClassProducts.total(_others(parts, fold)).select(np.searchsorted(union, columns))
        return ranking, JointSample.of_products(products, moments, columns, *given)

    @cached_property
    def _parts(self) -> list[ClassMoments]:
        return self.rows.moments(Gaussian(), self.folds)

    def _training(self, fold: int | None) -> ClassMoments:
        if fold not in self._totals:
            self._totals[fold] = ClassMoments.total(_others(self._parts, fold))
        return self._totals[fold]

    @property
    def _every(self) -> list[int | None]:
        return [None] if self.folds is None else list(range(self.folds.count))

    def _plain(self, fold: int | None) -> FeatureRanking:
        """Features by their own divergence."""
        models, moments = self.models, self._training(fold)
        if models.smoothing is None:
            moments = weighing_one(moments)
        given = (models.smoothing or POOLED, models.divergence, models.prior, 1)
        return ranked_decision(Gaussian(), moments, *given)[0]

    @cached_property
    def _plains(self) -> dict[int | None, FeatureRanking]:
        return {fold: self._plain(fold) for fold in self._every}

    def _ranking(self, fold: int | None) -> FeatureRanking:
        plain = self._plains[fold]
        if self.models.joint.search == "top":
            return plain
        union, parts = self._halves
        pool = plain.order[:SEARCH_POOL]
        pairs = [_halves_of(parts, fold, half).select(np.searchsorted(union, pool)) for half in (0, 1)]
        share = self.models.joint.shrinkage
        share = share if isinstance(share, float) else SEARCH_SHRINKAGE
        chosen = cross_fitted_order(pairs[0], pairs[1], share, self.size)
        rest = np.setdiff1d(np.arange(len(plain.order)), chosen, assume_unique=True)
        order = np.concatenate([pool[chosen], plain.order[rest]])
        return replace(plain, order=order)

    @cached_property
    def _halves(self) -> tuple[Integers, list[ClassProducts]]:
        union = self._union(SEARCH_POOL)
        return union, self.rows.products(union, _HalfFolds(self.folds))

    @cached_property
    def _products(self) -> tuple[Integers, list[ClassProducts]]:
        orders = [self._ranking(fold).order[: self.size] for fold in self._every]
        union = np.unique(np.concatenate(orders))
        return union, self.rows.products(
            union, self.folds, self.per_class, observed_means(self._parts, union)
        )

    def _union(self, size: int) -> Integers:
        return np.unique(np.concatenate([r.order[:size] for r in self._plains.values()]))

    def training(self, fold: int | None, sample: JointSample) -> tuple[Floats, Membership]:
        """Training rows of a fold as z (n, K), missing cells at the mean, and their classes."""
        assert isinstance(self.rows, ArrayRows)
        members = self._members(fold)
        values = self.rows.X[members.rows][:, sample.columns]
        values = np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)
        z = (values - sample.origin) * sample.rate
        return np.where(np.isnan(z), 0.0, z), members

    def _members(self, fold: int | None) -> Membership:
        """Return the training rows of a fold, and the class of each."""
        assert isinstance(self.rows, ArrayRows)
        held = np.zeros(self.rows.X.shape[0], dtype=np.intp)
        if fold is not None and self.folds is not None:
            assigned = self.rows.dealt(self.folds)
            held = np.where((assigned == fold) | (assigned == LEFT_OUT), -1, 0)
        return Membership.of(self.rows.labels, self.rows.n_classes, self.rows.weights, held)


def _others(parts: list[Any], fold: int | None) -> list[Any]:
    """Return all parts but that of the fold."""
    return [part for f, part in enumerate(parts) if f != fold]


def _halves_of(parts: list[ClassProducts], fold: int | None, half: int) -> ClassProducts:
    """Return one half of every fold but the one given; what the half-folds never hold out is empty."""
    kept = [part for p, part in enumerate(parts[:-1]) if p % 2 == half and (fold is None or p // 2 != fold)]
    return ClassProducts.total(kept)
