"""The decision on mixed columns: that of each block, added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.decisions.linear import LinearDecision, Reorder, ranked_decision, scored_decision, unknown_beside
from maxdisc.decisions.sweep import Sweep, counted
from maxdisc.densities.class_densities import class_prior
from maxdisc.divergences.block_scores import cell_scores, chance
from maxdisc.divergences.class_divergences import Divergence, FeatureRanking
from maxdisc.families import Family
from maxdisc.families.blocks import Block, Columns, MixedMoments
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.block_matrix import Table
from maxdisc.numerics.matrices import Floats, Integers, blocks


@dataclass(frozen=True, eq=False)
class BlockDecision:
    """Linear decision on the cells of one block, with an even prior."""

    decision: LinearDecision
    places: Integers  # (k,)
    has_levels: bool

    def first(self, size: int) -> BlockDecision:
        """With the cells of the best columns only."""
        n_cells = int(np.searchsorted(self.places, size))
        return replace(self, decision=self.decision.first(n_cells), places=self.places[:n_cells])

    def scores(self, X: Any) -> Floats:
        """Return what the block adds to each class's score, shape (N, C)."""
        decision = self.decision
        if not self.has_levels:
            return decision.scores(X)
        # A row has few of many indicators: they are summed as they are, none is looked for.
        weights = np.zeros((X.shape[1], decision.n_classes))
        weights[decision.columns] = decision.weights[0].T
        return np.asarray(X @ weights)

    def contributions(self, X: Any) -> tuple[Floats, Integers]:
        """Return what each cell adds to each class's score, (n, C, k), and its kept column."""
        decision = self.decision
        if not self.has_levels:
            return decision.contributions(X), self.places
        starts = np.flatnonzero(np.diff(self.places, prepend=-1))
        group = np.cumsum(np.diff(self.places, prepend=-1) != 0) - 1
        out = np.zeros((X.shape[0], decision.n_classes, len(starts)))
        at = sp.coo_array(sp.csc_array(X)[:, decision.columns])
        out[at.row, :, group[at.col]] = decision.weights[0][:, at.col].T
        return out, self.places[starts]


@dataclass(frozen=True, eq=False)
class MixedDecision:
    """Log prior plus the evidence of every block about the selected columns."""

    columns: Integers  # (K,)
    parts: Sequence[BlockDecision]
    log_prior: Floats  # (C,)

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""
        return len(self.log_prior)

    def first(self, size: int) -> MixedDecision:
        """Return the decision that keeps only the ``size`` best of these columns."""
        if size >= len(self.columns):
            return self
        return replace(self, columns=self.columns[:size], parts=[part.first(size) for part in self.parts])

    def weighed(self, strength: Floats, bias: Floats, correction: Floats | None = None) -> MixedDecision:
        """Return the decision with the evidence of each column multiplied by ``strength`` (K,)."""
        if correction is not None:
            raise ValueError("evidence of mixed columns is not refined: use evidence='calibrated'.")
        none = np.zeros(self.n_classes)
        parts = [
            replace(part, decision=part.decision.weighed(strength[part.places], none)) for part in self.parts
        ]
        return replace(self, parts=parts, log_prior=self.log_prior + bias)

    def between(self, pair: Integers) -> MixedDecision:
        """Return the decision among some of the classes."""
        parts = [replace(part, decision=part.decision.between(pair)) for part in self.parts]
        return replace(self, parts=parts, log_prior=self.log_prior[pair])

    def scores(self, X: Table) -> Floats:
        """Log prior plus evidence, shape (N, C): scores whose softmax is the posterior."""
        out = np.tile(self.log_prior, (X.shape[0], 1))
        for part, cells in zip(self.parts, X.parts, strict=True):
            if len(part.places):
                out += part.scores(cells)
        return out

    def log_base(self, X: Table) -> Floats:
        """Log base measure of the kept columns of each row, shape (N,)."""
        return np.sum([p.decision.log_base(c) for p, c in zip(self.parts, X.parts, strict=True)], axis=0)

    def by_bands(self, X: Table, edges: Integers) -> Floats:
        """Return the evidence of each band of columns, without the prior, shape (N, C, G)."""
        out = np.zeros((X.shape[0], self.n_classes, len(edges)))
        for part, cells in zip(self.parts, X.parts, strict=True):
            if len(part.places):
                out += part.decision.by_bands(cells, np.searchsorted(part.places, edges))
        return out

    def contributions(self, X: Table) -> Floats:
        """Return what each kept column adds to each class's score, shape (N, C, K)."""
        out = np.zeros((X.shape[0], self.n_classes, len(self.columns)))
        for part, cells in zip(self.parts, X.parts, strict=True):
            # A column has one place in a block.
            added, places = part.contributions(cells)
            out[:, :, places] += added
        return out

    def swept(
        self, X: Table, labels: npt.NDArray[Any], weights: Floats, sizes: Integers, rows: Integers
    ) -> Sweep:
        """Accuracy and log-loss of the best 1, 2, ... columns among some rows."""
        kept, result = self.first(int(sizes[-1])), Sweep.zero(len(sizes))
        for block in blocks(len(rows), self.n_classes * len(sizes)):
            some = rows[block]
            evidence = np.moveaxis(np.cumsum(kept.by_bands(X[some], sizes), axis=2), 2, 0)
            correct, loss = counted(self.log_prior + evidence, labels[some], weights[some])
            w = weights[some] if labels.ndim == 1 else weights[some] * labels[some].sum(axis=1)
            result = result + Sweep(correct, loss, float(w.sum()), float(w @ w))
        return result


def ranked_model(
    family: Family | Columns,
    moments: ClassMoments | MixedMoments,
    smoothing: Smoothing,
    divergence: Divergence,
    prior: Floats | None = None,
    size: int | None = None,
    reorder: Reorder | None = None,
) -> tuple[FeatureRanking, LinearDecision | MixedDecision]:
    """Rank all features and build the decision on the best of them, for one family or several."""
    if isinstance(family, Columns):
        assert isinstance(moments, MixedMoments)  # both are of one table
        return _ranked_columns(family, moments, smoothing, divergence, prior, size)
    assert isinstance(moments, ClassMoments)
    return ranked_decision(family, moments, smoothing, divergence, prior, size, reorder)


def unknown_model(
    decision: LinearDecision | MixedDecision, moments: ClassMoments | MixedMoments, smoothing: Smoothing
) -> LinearDecision | MixedDecision:
    """Return the densities of the two unknown classes, for one family or several."""
    if isinstance(decision, LinearDecision):
        assert isinstance(moments, ClassMoments)
        return unknown_beside(decision, moments, smoothing)
    assert isinstance(moments, MixedMoments)  # both are of one table
    parts = [
        replace(part, decision=unknown_beside(part.decision, sums, smoothing))
        for part, sums in zip(decision.parts, moments.parts, strict=True)
    ]
    return replace(decision, parts=parts, log_prior=np.zeros(2))


def _ranked_columns(
    columns: Columns,
    moments: MixedMoments,
    smoothing: Smoothing,
    divergence: Divergence,
    prior: Floats | None,
    size: int | None,
) -> tuple[FeatureRanking, MixedDecision]:
    """Scores of cells add up to those of their columns, less what chance alone would give each.

    Densities with more parameters look farther apart where they are equal: columns of several families are
    compared by what is left.
    """
    n_columns = moments.n_features
    scores, by_chance = np.zeros(n_columns), np.zeros(n_columns)
    solved, adjusted = np.ones(n_columns, dtype=np.bool_), np.zeros(n_columns, dtype=np.bool_)
    given = class_prior(moments, prior)
    decisions: list[tuple[Block, LinearDecision]] = []
    for block, part in zip(columns.blocks, moments.parts, strict=True):
        score = cell_scores(block, divergence)
        found, decision = scored_decision(block.family, part, smoothing, score, given)
        np.add.at(scores, block.columns, found.scores)
        np.add.at(by_chance, block.columns, chance(block, part, smoothing, divergence))
        solved[block.columns[found.unsolved]] = False
        adjusted[block.columns[found.adjusted]] = True
        decisions.append((block, replace(decision, log_prior=np.zeros(moments.n_classes))))
    apart = np.where(scores > 0, scores - by_chance, -np.inf)
    lowest = min(float(apart[np.isfinite(apart)].min(initial=0.0)), 0.0)
    order = FeatureRanking.of(np.where(np.isfinite(apart), apart - lowest, 0.0)).order
    ranking = replace(FeatureRanking.of(np.maximum(apart, 0.0), solved, adjusted), order=order)
    place = np.empty(n_columns, dtype=np.intp)
    place[order] = np.arange(n_columns)
    size = n_columns if size is None else size
    parts = []
    for block, decision in decisions:
        of_cell = place[block.columns]
        best = np.argsort(of_cell, kind="stable")
        best = best[: int((of_cell < size).sum())]
        parts.append(BlockDecision(decision.best_first(best), of_cell[best], block.has_levels))
    with np.errstate(divide="ignore"):
        return ranking, MixedDecision(order[:size], parts, np.log(given))
