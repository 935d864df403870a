"""The Bayes decision: linear in the statistics of the kept features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.decisions.sweep import Bucketed, Sweep, counted, sweep_tasks
from maxdisc.densities.class_densities import (
    LEAST_SPREAD,
    ClassDensities,
    class_prior,
    density_blocks,
    estimate,
)
from maxdisc.divergences.class_divergences import (
    Divergence,
    FeatureRanking,
    checked_scores,
    js_gm,
    rao,
    require_finite,
)
from maxdisc.families import (
    Bernoulli,
    Categorical,
    Exponential,
    Family,
    Gaussian,
    Geometric,
    NumericFamily,
    Poisson,
)
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.smoothing import LEAST, Smoothing, SmoothingByFeature
from maxdisc.numerics.matrices import (
    Booleans,
    Floats,
    Integers,
    Matrix,
    blocks,
    is_sparse,
    on_lines,
    row_totals,
    with_data,
)
from maxdisc.numerics.switches import batch_size, is_compiled
from maxdisc.numerics.threads import in_threads

#: From a ranking by scores to another of the same features.
Reorder = Callable[[FeatureRanking], FeatureRanking]

# From so many (class, feature) cells on, compiled code is worth loading: of families with one statistic, for
# which it takes a half to a fifth of the time, ...
MANY_PARAMETERS = 2**15
# ... and of Gaussians.
MANY_CELLS = 2**18
# So many are worked on by a thread at a time.
CELLS_AT_A_TIME = 2**17
# Sparse rows are scored by compiled code from this many stored cells on.
MANY_STORED = 2**20
# A sweep goes over the products of stored cells and classes several times: it is compiled from this many on.
MANY_SWEPT = 2**22
# Sparse rows of at most this many cells, zeros included, are scored dense: slicing them would take longer.
SMALL = 2**14
# Rows with so many times fewer stored cells than there are features are scored by these features alone.
LITTLE = 4
# Natural parameters times this are those of a density a thousand times as broad.
BREADTH = 1e-3
# Terms of this size cancel to about 1e-12. A Gaussian reaches it 140 deviations away from its origin.
FAR = 1e4
# In sparse rows such a feature would have to be made dense, so more is borne: terms cancel to about 1e-7.
FAR_IN_SPARSE = 1e9


@dataclass(frozen=True, eq=False)
class LinearDecision:
    """Log prior plus, for each selected feature, ``weights . statistics(x - origin) - baseline``."""

    family: Family
    columns: Integers  # (K,)
    origin: Floats  # (K,)
    weights: Floats  # (L, C, K)
    baseline: Floats  # (C, K)
    log_prior: Floats  # (C,)
    strength: Floats | None = None  # (K,)

    @classmethod
    def of(
        cls,
        family: Family,
        moments: ClassMoments,
        smoothing: Smoothing,
        columns: Integers,
        prior: Floats | None = None,
    ) -> LinearDecision:
        """Return the decision among densities estimated from moments, for the columns given."""
        decision = cls._blank(family, moments, np.asarray(columns), prior)
        for block, densities in density_blocks(family, moments, smoothing, prior, columns):
            decision._fill(block, densities)
        return decision

    @classmethod
    def _blank(
        cls, family: Family, moments: ClassMoments, columns: Integers, prior: Floats | None
    ) -> LinearDecision:
        shape = (moments.n_classes, len(columns))
        with np.errstate(divide="ignore"):
            log_prior = np.log(class_prior(moments, prior))
        weights = np.empty((family.n_statistics, *shape))
        return cls(family, columns, np.empty(len(columns)), weights, np.empty(shape), log_prior)

    def _fill(self, block: slice, densities: ClassDensities) -> None:
        self.weights[:, :, block] = densities.natural
        self.baseline[:, block] = densities.log_partition
        self.origin[block] = densities.origin
        if not densities.usable.all():
            # What says nothing contributes nothing, to any class.
            self.weights[:, :, block][:, :, ~densities.usable] = 0.0
            self.baseline[:, block][:, ~densities.usable] = 0.0

    def best_first(self, order: Integers) -> LinearDecision:
        """These columns in another order, or some of them; all of them change places where they are."""
        if len(order) < len(self.columns):
            weights, baseline = self.weights.take(order, axis=2), self.baseline.take(order, axis=1)
        else:
            weights, baseline = self.weights, self.baseline
            for row in (*weights.reshape(-1, len(order)), *baseline):
                row[:] = row[order]
        return replace(
            self, columns=self.columns[order], origin=self.origin[order], weights=weights, baseline=baseline
        )

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed when it is asked for."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""
        return int(self.weights.shape[1])

    @property
    def telling(self) -> Booleans:
        """The features that say something of some class, shape (K,)."""
        return np.asarray(self.weights.any(axis=(0, 1)) | self.baseline.any(axis=0))

    def first(self, size: int) -> LinearDecision:
        """Return the decision that keeps only the ``size`` best of these features."""
        if size >= len(self.columns):
            return self
        return replace(
            self,
            columns=self.columns[:size],
            origin=self.origin[:size],
            weights=self.weights[:, :, :size],
            baseline=self.baseline[:, :size],
            strength=None if self.strength is None else self.strength[:size],
        )

    def weighed(self, strength: Floats, bias: Floats, correction: Floats | None = None) -> LinearDecision:
        """Return the decision with the evidence of each feature multiplied by ``strength`` (K,).

        Features scored by their densities (a class far from the origin) are not corrected.
        """
        weights, baseline = self.weights * strength, self.baseline * strength
        if correction is not None:
            weights[0] += np.where(self.reach > FAR, 0.0, correction)
        log_prior = self.log_prior + bias
        return replace(self, weights=weights, baseline=baseline, log_prior=log_prior, strength=strength)

    def between(self, pair: Integers) -> LinearDecision:
        """Return the decision among some of the classes."""
        return replace(
            self,
            weights=self.weights[:, pair],
            baseline=self.baseline[pair],
            log_prior=self.log_prior[pair],
        )

    @cached_property
    def reach(self) -> Floats:
        """The largest term that the linear form of each feature has to cancel, shape (K,)."""
        if not self.family.translates:
            return np.zeros(len(self.columns))
        reach = np.abs(self.baseline).max(axis=0)
        if self.strength is not None:
            reach = np.divide(reach, self.strength, out=np.zeros_like(reach), where=self.strength > 0)
        return np.asarray(reach)

    def apart(self, sparse: bool) -> Booleans:
        """Return the features that are not scored by the matrix product over all others, shape (K,).

        Dense: those in which a class lies so far from the origin that linear terms cancel. Sparse: those with
        an origin, which have hardly any zeros, and the farthest.
        """
        if sparse:
            return (self.origin != 0) | (self.reach > FAR_IN_SPARSE)
        return self.reach > FAR

    def scores(self, X: Matrix) -> Floats:
        """Return log prior plus evidence, shape (N, C); a missing cell adds nothing."""
        if is_sparse(X) and self._has_kernel(X) and is_compiled(X.nnz, MANY_STORED):
            return self._compiled_scores(X.tocsr())
        if is_sparse(X) and LITTLE * X.nnz < len(self.columns) and self._is_plain_in_sparse:
            return self._scores_of_little(X.tocsr())
        out = np.empty((X.shape[0], self.n_classes))
        for rows in row_blocks(X.shape[0], self, is_sparse(X)):
            out[rows] = self.log_prior + self._evidence(self._kept(rows_of(X, rows)))
        return out

    def _has_kernel(self, X: Matrix) -> bool:
        """Return whether compiled code supports this decision and these rows."""
        known = type(self.family) in (Poisson, Exponential, Geometric, Bernoulli, Gaussian)
        return known and X.dtype.kind in "fiub" and X.dtype.itemsize <= 8

    @cached_property
    def _is_plain_in_sparse(self) -> bool:
        """Whether all that sparse rows do not store says the same in every row."""
        return self.family.preserves_zero and not self.apart(sparse=True).any()

    @cached_property
    def _in_order(self) -> tuple[Integers, Integers]:
        """The columns in increasing order, and where they are among the kept ones."""
        order = np.argsort(self.columns, kind="stable")
        return self.columns[order], order

    @cached_property
    def _whole_baseline(self) -> Floats:
        """What all features together take from each class, shape (C,)."""
        return np.asarray(self.baseline.sum(axis=1))

    def _scores_of_little(self, X: Matrix) -> Floats:
        """Return the scores of sparse rows with far fewer stored cells than features."""
        known, order = self._in_order
        at = np.minimum(np.searchsorted(known, X.indices), len(known) - 1)
        values = np.where(known[at] == X.indices, X.data, 0.0)[None, :]
        planes = self.family.statistics(values)
        terms = sum(w[:, order[at]] * plane for w, plane in zip(self.weights, planes, strict=True))
        return self.log_prior + (row_totals(X, terms).T - self._whole_baseline)

    def _is_swept_by_kernel(self, X: Matrix) -> bool:
        """Return whether the compiled sweep can have these rows, and they are many."""
        single = self.family.n_statistics == 1 and self._has_kernel(X)
        is_many = single and is_compiled(X.nnz * self.n_classes, MANY_SWEPT)
        return is_many and not self.apart(sparse=True).any()

    def _bucketed(self, sizes: Integers, n_features: int) -> Bucketed:
        """As the compiled sweep takes it: the first features for each size."""
        place = np.full(n_features, -1, dtype=np.int32)
        place[self.columns] = np.arange(len(self.columns))
        bucket = np.full(n_features, len(sizes), dtype=np.int32)
        steps = np.diff(sizes, prepend=0)
        bucket[self.columns] = np.repeat(np.arange(len(sizes), dtype=np.int32), steps)
        baseline = np.add.reduceat(self.baseline, np.r_[0, sizes[:-1]], axis=1).T
        return Bucketed(self._by_feature, place, bucket, np.ascontiguousarray(baseline), self.log_prior)

    @cached_property
    def _by_feature(self) -> Floats:
        """The weights of all classes of a feature side by side, shape (K, L x C)."""
        n_statistics, n_classes, n_kept = self.weights.shape
        table = on_lines(n_kept, n_statistics * n_classes)
        table.reshape(n_kept, n_statistics, n_classes)[:] = np.moveaxis(self.weights, 2, 0)
        return table

    def _compiled_scores(self, X: Matrix) -> Floats:
        """Return what :meth:`scores` does for sparse rows, compiled, in threads over ranges of rows."""
        from maxdisc.decisions.compiled_scores import score_rows

        apart = self.apart(sparse=True)
        place = np.full(X.shape[1], -1, dtype=np.int32)
        place[self.columns] = np.where(apart, -1, np.arange(len(self.columns)))
        out = np.empty((X.shape[0], self.n_classes))
        given = (X.indptr, X.indices, X.data, place, self._by_feature)
        level = (self.baseline[:, ~apart].sum(axis=1), self.log_prior)
        cuts = np.searchsorted(X.indptr, np.arange(0, X.nnz, batch_size(CELLS_AT_A_TIME))[1:])
        ranges = pairwise(np.unique([0, *cuts, X.shape[0]]).tolist())
        in_threads(lambda some: score_rows(*given, *level, *some, out), list(ranges))
        if apart.any():
            at = np.flatnonzero(apart)
            for rows in row_blocks(X.shape[0], self, sparse=True):
                values = sp.csc_array(X[rows])[:, self.columns[at]].astype(np.float64)
                out[rows] += self._evidence(values.toarray(), at)
        return out

    def log_base(self, X: Matrix) -> Floats:
        """Log base measure of the kept features of each row, shape (N,); 0 for those that say nothing."""
        telling = self.columns[self.telling]
        out = np.empty(X.shape[0])
        for rows in row_blocks(X.shape[0], self, is_sparse(X)):
            kept = X[rows][:, telling]
            if is_sparse(kept):
                kept = sp.csr_array(kept)
                out[rows] = with_data(kept, self.family.log_base(kept.data)).sum(axis=1)
            else:
                values = np.asarray(kept, dtype=np.float64)
                missing = np.isnan(values)
                base = self.family.log_base(np.where(missing, 0.5, values))
                out[rows] = np.where(missing, 0.0, base).sum(axis=1)
        return out

    def swept(
        self, X: Matrix, labels: npt.NDArray[Any], weights: Floats, sizes: Integers, rows: Integers
    ) -> Sweep:
        """Return what the best 1, 2, ... features get right among some rows: see :func:`sweep`."""
        return sweep(self, X, labels, weights, sizes, rows)

    def by_bands(self, X: Matrix, edges: Integers) -> Floats:
        """Return the evidence of each band of features without the prior, shape (N, C, G)."""
        kept = self.first(int(edges[-1]))
        out = np.empty((X.shape[0], self.n_classes, len(edges)))
        for rows in row_blocks(X.shape[0], kept, is_sparse(X)):
            for band, evidence in enumerate(kept._by_piece(kept._kept(rows_of(X, rows)), edges)):
                out[rows, :, band] = evidence
        return out

    def _by_piece(self, kept: Matrix, edges: Integers) -> Iterator[Floats]:
        """Yield the evidence (n, C) of the features from each edge to the next; ``kept`` holds them all."""
        apart = self.apart(is_sparse(kept))
        planes, missing = self._planes_of(kept, slice(None))
        for start, end in pairwise([0, *edges.tolist()]):
            part = slice(start, end)
            if apart[part].any():
                yield self._evidence(kept[:, part], part)
            else:
                some = [plane[:, part] for plane in planes]
                yield self._product(some, None if missing is None else missing[:, part], part)

    def contributions(self, X: Matrix) -> Floats:
        """Return what each kept feature adds to each class's score, shape (N, C, K)."""
        values = X[:, self.columns]
        values = np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)
        missing = np.isnan(values)
        planes = _planes(self.family, values - self.origin, missing)
        out = sum(w[None] * p[:, None] for w, p in zip(self.weights, planes, strict=True)) - self.baseline
        far = self.apart(sparse=False)
        if far.any():
            for c in range(self.n_classes):
                out[:, c, far] = self._direct(values[:, far], c, far)
        return np.where(missing[:, None], 0.0, out)

    def _kept(self, X: Matrix) -> Matrix:
        if is_sparse(X) and X.shape[0] * X.shape[1] <= SMALL:
            X = X.toarray()
        if is_sparse(X):
            return sp.csc_array(X)[:, self.columns].astype(np.float64, copy=False)
        return np.asarray(X)[:, self.columns].astype(np.float64, copy=False)

    def _evidence(self, kept: Matrix, at: slice | Integers = slice(None)) -> Floats:
        """Evidence of some of the kept features (``kept`` holds just those), shape (n, C)."""
        apart = self.apart(is_sparse(kept))[at]
        if not apart.any():
            return self._product(*self._planes_of(kept, at), at)
        at = np.arange(len(self.columns))[at]
        out = self._product(*self._planes_of(kept[:, ~apart], at[~apart]), at[~apart])
        if is_sparse(kept):
            return out + self._evidence(kept[:, apart].toarray(), at[apart])
        values = kept[:, apart]
        for c in range(self.n_classes):
            out[:, c] += np.where(np.isnan(values), 0.0, self._direct(values, c, at[apart])).sum(axis=1)
        return out

    def _planes_of(self, kept: Matrix, at: slice | Integers) -> tuple[Sequence[Matrix], Booleans | None]:
        """Statistics of some of the kept features, and which cells are missing, if any are."""
        if is_sparse(kept):
            return self.family.statistics(kept), None
        missing = np.isnan(kept)
        planes = _planes(self.family, kept - self.origin[at], missing)
        return planes, missing if missing.any() else None

    def _product(self, planes: Sequence[Matrix], missing: Booleans | None, at: slice | Integers) -> Floats:
        """Evidence as one matrix product for each statistic."""
        weights, baseline = self.weights[:, :, at], self.baseline[:, at]
        out = sum(np.asarray(plane @ w.T) for w, plane in zip(weights, planes, strict=True))
        if missing is not None:
            return np.asarray(out - (~missing).astype(np.float64) @ baseline.T)
        return np.asarray(out - baseline.sum(axis=1))

    def _direct(self, values: Floats, c: int, at: Integers | Booleans) -> Floats:
        """Log densities in class c, cell by cell: for the few features that are far, shape (n, k)."""
        natural = self.weights[:, c, at]
        if self.strength is None:
            return self.family.log_density(values - self.origin[at], natural)
        strength = self.strength[at]
        heard = strength > 0
        density = self.family.log_density(
            values[:, heard] - self.origin[at][heard], natural[:, heard] / strength[heard]
        )
        out = np.zeros(values.shape)
        out[:, heard] = strength[heard] * density
        return out


def ranked_decision(
    family: Family,
    moments: ClassMoments,
    smoothing: Smoothing,
    divergence: Divergence,
    prior: Floats | None = None,
    size: int | None = None,
    reorder: Reorder | None = None,
) -> tuple[FeatureRanking, LinearDecision]:
    """Rank all features and build the decision on the best ``size``, from one estimate of the densities."""
    if moments.observed is None and worth_compiling(family, divergence, *moments.sums.shape[1:]):
        return _ranked_by_kernel(family, moments, smoothing, divergence, prior, size, reorder)
    if divergence is js_gm and _are_many_gaussians(family, moments):
        scores = _gaussian_scores(moments, smoothing, prior)
        if np.isfinite(scores).all():
            ranking = FeatureRanking.of(scores)
            if reorder is not None:
                ranking = reorder(ranking)
            return ranking, LinearDecision.of(family, moments, smoothing, ranking.order[:size], prior)
    ranking, decision = scored_decision(
        family, moments, smoothing, lambda densities: checked_scores(divergence, densities), prior
    )
    if reorder is not None:
        ranking = reorder(ranking)
    return ranking, decision.best_first(ranking.order[:size])


def ranked_decisions(
    family: Family,
    moments: ClassMoments,
    smoothings: Sequence[Smoothing],
    divergence: Divergence,
    prior: Floats | None,
    size: int,
) -> list[tuple[FeatureRanking, LinearDecision]]:
    """Return what :func:`ranked_decision` returns for each smoothing, from one estimate of all densities.

    The features are repeated for every smoothing, so this pays only where there are few of them. Targets are
    the features' own, and the divergence scores each feature by itself.
    """
    n = moments.n_features
    repeated = moments.select(np.tile(np.arange(n), len(smoothings)))
    amounts = SmoothingByFeature(np.repeat([float(s.amount) for s in smoothings], n))
    densities = estimate(family, repeated, amounts, prior)
    scores = checked_scores(divergence, densities)
    solved = np.asarray(densities.solved.all(axis=0))
    adjusted = np.asarray(densities.adjusted.any(axis=0) & densities.usable)
    every = LinearDecision._blank(family, repeated, np.tile(np.arange(n), len(smoothings)), prior)
    every._fill(slice(None), densities)
    out = []
    for start in range(0, len(scores), n):
        part = slice(start, start + n)
        ranking = FeatureRanking.of(scores[part], solved[part], adjusted[part])
        out.append((ranking, every.best_first(start + ranking.order[:size])))
    return out


def scored_decision(
    family: Family,
    moments: ClassMoments,
    smoothing: Smoothing,
    score: Callable[[ClassDensities], Floats],
    prior: Floats | None = None,
) -> tuple[FeatureRanking, LinearDecision]:
    """Score all features and build a decision whose columns keep the order of the rows."""
    decision = LinearDecision._blank(family, moments, np.arange(moments.n_features), prior)
    scores = np.empty(moments.n_features)
    solved, adjusted = (
        np.ones(moments.n_features, dtype=np.bool_),
        np.zeros(moments.n_features, dtype=np.bool_),
    )
    for block, densities in density_blocks(family, moments, smoothing, prior):
        scores[block] = score(densities)
        solved[block] = densities.solved.all(axis=0)
        adjusted[block] = densities.adjusted.any(axis=0) & densities.usable
        decision._fill(block, densities)
    return FeatureRanking.of(scores, solved, adjusted), decision


def worth_compiling(family: Family, divergence: Divergence, n_classes: int, n_features: int) -> bool:
    """Return whether there are kernels for family and divergence, and enough cells to load them for."""
    known = type(family) in (Poisson, Exponential, Geometric, Bernoulli) and divergence in (js_gm, rao)
    return known and is_compiled(n_classes * n_features, MANY_PARAMETERS)


def _ranked_by_kernel(
    family: Family,
    moments: ClassMoments,
    smoothing: Smoothing,
    divergence: Divergence,
    prior: Floats | None,
    size: int | None,
    reorder: Reorder | None,
) -> tuple[FeatureRanking, LinearDecision]:
    """Return what :func:`ranked_decision` does in blocks, by compiled code over ranges of features.

    Parameters are computed twice, for the scores and for the features kept: that takes less time, and memory,
    than to keep all of them and put them in order.
    """
    from maxdisc.decisions import compiled_parameters as tables

    kind, sums, weight = tables.KINDS[family.name], np.ascontiguousarray(moments.sums[0]), moments.weight
    pseudo = smoothing.pseudo_rows(moments, moments.sums, smoothing.level(moments))
    number, target = np.ascontiguousarray(pseudo.number), np.ascontiguousarray(pseudo.mean[0])
    informative = family.interior(pseudo.pooled)
    scores = np.empty(moments.n_features)
    shares = class_prior(moments, prior)

    known = tables.DIVERGENCES[divergence.__name__]

    def score(some: slice) -> None:
        given = (kind, known, sums, weight, shares, number, target, informative)
        tables.scores_from_sums(*given, some.start, some.stop, scores)

    in_threads(score, list(blocks(moments.n_features, moments.n_classes, CELLS_AT_A_TIME)))
    require_finite(scores)
    ranking = FeatureRanking.of(scores)
    if reorder is not None:
        ranking = reorder(ranking)
    columns = ranking.order[:size]
    decision = LinearDecision._blank(family, moments, columns, prior)
    decision.origin[:] = 0.0

    rows = number[columns]
    smoothed = (rows, rows * target[columns], informative[columns], columns)

    def fill(c: int) -> None:
        given = (kind, sums, weight, *smoothed, c, c + 1)
        tables.tables_from_sums(*given, decision.weights[0], decision.baseline)

    in_threads(fill, range(moments.n_classes))
    return ranking, decision


def log_partitions(family: Family, weights: Floats) -> Floats:
    """Return log-partitions (C, K) in single precision, 0 for features whose parameters are all 0."""
    telling = weights.any(axis=(0, 1))
    out = np.zeros(weights.shape[1:])
    with np.errstate(over="ignore"):
        out[:, telling] = family.log_partition(weights[:, :, telling]).astype(np.float32)
    return out


def unknown_decision(
    family: Family, moments: ClassMoments, smoothing: Smoothing, columns: Integers
) -> LinearDecision:
    """Return the densities of two unknown classes: pooled over all rows, and a far broader one.

    The broad one has natural parameters close to 0, so rows far from everything are most likely there.
    Densities without a closed form, and levels, are not broadened.
    """
    pooled = LinearDecision.of(family, moments.together(), smoothing, columns)
    weights, baseline = pooled.weights, pooled.baseline
    if not isinstance(family, Categorical | NumericFamily):
        weights = BREADTH * weights
        telling = pooled.telling
        baseline = np.zeros_like(baseline)
        baseline[:, telling] = family.log_partition(weights[:, :, telling])
    return replace(
        pooled,
        weights=np.concatenate([pooled.weights, weights], axis=1),
        baseline=np.concatenate([pooled.baseline, baseline]),
        log_prior=np.zeros(2),
    )


def unknown_beside(decision: LinearDecision, moments: ClassMoments, smoothing: Smoothing) -> LinearDecision:
    """Return :func:`unknown_decision` for the features of a decision from the same moments.

    Features that say nothing there say nothing here.
    """
    unknown = unknown_decision(decision.family, moments, smoothing, decision.columns)
    silent = ~decision.telling
    if silent.any():
        unknown.weights[:, :, silent] = 0.0
        unknown.baseline[:, silent] = 0.0
    return unknown


def _are_many_gaussians(family: Family, moments: ClassMoments) -> bool:
    """Return whether these are moments of Gaussians about their means, enough to compile their scores."""
    centred = type(family) is Gaussian and moments.origin is not None and moments.nonzero is None
    return centred and is_compiled(moments.sums[0].size, MANY_CELLS)


def _gaussian_scores(moments: ClassMoments, smoothing: Smoothing, prior: Floats | None) -> Floats:
    """JS_GM of every feature, shape (D,), by compiled code over ranges of features."""
    from maxdisc.decisions.compiled_parameters import gaussian_scores

    sums, origin = np.ascontiguousarray(moments.sums), np.ascontiguousarray(moments.origin)
    cells, shares = np.ascontiguousarray(moments.cells), class_prior(moments, prior)
    given = (sums, origin, cells, moments.weight, shares, smoothing.amount, LEAST, LEAST_SPREAD)
    scores = np.empty(moments.n_features)

    def score(some: slice) -> None:
        gaussian_scores(*given, some.start, some.stop, scores)

    in_threads(score, list(blocks(moments.n_features, moments.n_classes, CELLS_AT_A_TIME)))
    return scores


def _planes(family: Family, values: Floats, missing: Booleans) -> tuple[Floats, ...]:
    """Statistics of dense values, 0 where a cell is missing."""
    if not missing.any():
        return family.statistics(values)
    # Any value inside the support will do: its statistics are then set to 0.
    planes = family.statistics(np.where(missing, 0.5, values))
    return tuple(np.where(missing, 0.0, plane) for plane in planes)


def sweep(
    decision: LinearDecision,
    X: Matrix,
    labels: npt.NDArray[Any],
    weights: Floats,
    sizes: Integers,
    rows: Integers | None = None,
) -> Sweep:
    """Return accuracy and log-loss of the best 1, 2, ... features, in one pass over the terms."""
    decision = decision.first(int(sizes[-1]))
    rows = np.arange(X.shape[0]) if rows is None else rows
    if labels.ndim == 1 and is_sparse(X) and decision._is_swept_by_kernel(X):
        X = X.tocsr().astype(np.float64, copy=False)
        tasks = sweep_tasks(X, labels, weights, rows, decision._bucketed(sizes, X.shape[1]))
        return sum(in_threads(lambda task: task(), tasks), Sweep.zero(len(sizes)))
    result = Sweep.zero(len(sizes))
    for block in row_blocks(len(rows), decision, is_sparse(X)):
        some = rows[block]
        kept = decision._kept(X[some])
        scores = np.tile(decision.log_prior, (len(some), 1))
        correct, loss = np.empty(len(sizes)), np.empty(len(sizes))
        for s, evidence in enumerate(decision._by_piece(kept, sizes)):
            scores = scores + evidence
            correct[s], loss[s] = counted(scores, labels[some], weights[some])
        w = weights[some] if labels.ndim == 1 else weights[some] * labels[some].sum(axis=1)
        result = result + Sweep(correct, loss, float(w.sum()), float(w @ w))
    return result


def row_blocks(n_rows: int, decision: LinearDecision, sparse: bool) -> list[slice]:
    """Ranges of rows whose dense temporaries stay small; sparse rows take only their stored cells."""
    apart = int(decision.apart(sparse).sum())
    width = max(64, 4 * apart) if sparse else len(decision.columns) + 4 * apart
    width = max(width, decision.n_classes)
    return list(blocks(n_rows, width))


def rows_of(X: Matrix, rows: slice) -> Matrix:
    """Return a range of rows; all of them without a copy."""
    return X if rows.start == 0 and rows.stop == X.shape[0] else X[rows]
