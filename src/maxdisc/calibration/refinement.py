"""Refined evidence: generative bands and a conditional model, weighed together on held-out rows.

Generative evidence counts twice what features share. The conditional model (maximum entropy with a ridge)
does not, but few rows teach it less. Both are fitted to the training rows of a fold and scored on its
held-out rows. One weight for each band, one for the conditional model and a bias for each class are learnt
from these scores. The result is as linear in the features as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from maxdisc.calibration.evidence import Evidence, equal_rows, held_out_loss, least, log_seen, weigh
from maxdisc.conditional.coordinate_ascent import RidgeFit, as_rows, fit_ridges
from maxdisc.conditional.shared_weights import SharedWeights
from maxdisc.decisions.linear import LinearDecision
from maxdisc.families.blocks import AnyFamily
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Booleans, Floats, Integers, Matrix, is_sparse, row_totals
from maxdisc.numerics.user_warnings import notice
from maxdisc.rows.row_sources import LEFT_OUT, ArrayRows, Folds
from maxdisc.rows.sampling import content_hashes, sampled
from maxdisc.selection.fold_models import Rule, SelectionPath, Trials, fewest_features
from maxdisc.selection.held_out import HeldOut, band_edges, bounded

#: Ridges that are tried, in rows, from much to little.
RIDGES = (1.0, 0.3, 0.1, 0.03)
#: Ridges are compared on folds that hold out this many rows, ...
ENOUGH_TO_COMPARE = 2000
#: ... and weights are learnt on folds that hold out this many, ...
ENOUGH_TO_MIX = 4000
#: ... or fewer, where classes are many: rows times classes.
ENOUGH_SCORES = 2**18
#: Largest gap of the conditional models, as a share of their objective; the same for those of folds and of
#: all rows, since weights are learnt from the former for the latter.
LARGEST_GAP = 0.03
#: Numbers of features are compared with this ridge, ...
PATH_RIDGE = 0.1
#: ... by models of at most so many training rows times classes, ...
MOST_LEARNT = 2**21
#: ... by at most this many numbers, of held-out rows, classes and sizes, but no fewer rows than that, ...
MOST_NUMBERS = 2**24
FEWEST_ROWS = 500
#: ... and each fit moves this many sweeps on from that with more features: it is compared, not kept.
PATH_SWEEPS = 1


class Refinable(Trials, Protocol):
    """Models of one plan of folds whose rows are in memory."""

    @property
    def family(self) -> AnyFamily:
        """The family of all features."""

    @property
    def plans(self) -> Sequence[Folds]:
        """The one plan."""

    def places(self, fold: int, smoothing: Smoothing, sizes: Integers) -> Integers:
        """Return where in ``sizes`` the first one is that selects each feature, shape (D,)."""


def refine(
    models: Refinable,
    rows: ArrayRows,
    decision: LinearDecision,
    smoothing: Smoothing,
    evidence: Evidence,
    prior: Floats,
) -> Evidence:
    """Return calibrated evidence with a conditional model beside it, where held-out rows gain by that.

    ``decision`` has all features, best first; as many are selected as the bands of ``evidence`` have.
    """
    return _Refinement(models, rows, decision, smoothing).solve(evidence, prior)


class SizeChoice(NamedTuple):
    """A number of features, the path it was chosen on, and its held-out log-loss."""

    size: int
    path: SelectionPath
    loss: float


def choose_size(
    models: Refinable,
    rows: ArrayRows,
    decision: LinearDecision,
    smoothing: Smoothing,
    sizes: Integers,
    rule: Rule,
    least_rows: int | Integers = 1,
    length: float | None = None,
) -> SizeChoice | None:
    """Choose a number of features by the held-out log-loss of refined evidence with each of ``sizes``.

    ``decision`` has all features, best first. Features in fewer than ``least_rows`` training rows are left
    out; rows are scaled to ``length``. Returns None where held-out rows are too few.
    """
    return _Refinement(models, rows, decision, smoothing, least_rows, length).choose_size(sizes, rule)


@dataclass(frozen=True, eq=False)
class _Refinement:
    models: Refinable
    rows: ArrayRows
    decision: LinearDecision
    smoothing: Smoothing
    least_rows: int | Integers = 1
    length: float | None = None

    @property
    def n_classes(self) -> int:
        return self.rows.n_classes

    @cached_property
    def weights(self) -> Floats:
        """Of the rows."""
        return np.ones(self.rows.X.shape[0]) if self.rows.weights is None else self.rows.weights

    @cached_property
    def fold(self) -> Integers:
        """That holds out each row."""
        return self.models.plans[0].of(self.rows.X, self.rows.start)

    @cached_property
    def telling(self) -> Booleans:
        """Classes with at least two rows: of others nothing is known while their row is held out."""
        held = (self.weights > 0) & (self.fold != LEFT_OUT)
        return np.bincount(self.rows.labels[held], minlength=self.n_classes) >= 2

    def folds_of(self, n_rows: int, least: int = 1) -> range:
        """The first folds that hold out this many rows together, or all."""
        held = np.cumsum([(self.fold == f).sum() for f in range(self.models.plans[0].count)])
        return range(min(max(int(np.searchsorted(held, n_rows)) + 1, least), len(held)))

    def held(self, edges: Integers, chosen: range) -> dict[int, HeldOut]:
        """Generative evidence of held-out rows, without rows and classes of which nothing can be learnt."""
        most = max(ENOUGH_SCORES // self.n_classes, FEWEST_ROWS)
        (found,) = self.models.held_out(edges, (self.smoothing,), most, chosen)
        kept = {f: h.select(self.telling[h.codes] & (h.weights > 0)) for f, h in found.items()}
        return {f: h for f, h in kept.items() if len(h)}

    # ------------------------------------------------------------------ the conditional model

    @cached_property
    def plane(self) -> _Plane:
        return _Plane.of(self.decision, self.rows.X)

    def trained(self, fold: int | None) -> Floats:
        """Return the weights of the training rows of a fold, or of all rows."""
        if fold is None:
            return self.weights
        return np.where((self.fold == fold) | (self.fold == LEFT_OUT), 0.0, self.weights)

    def view(self, fold: int | None, size: int) -> _View:
        """Return the features that the training rows select, in units of the ridge."""
        kept = self.decision.columns[:size]
        if fold is not None and size < self.rows.X.shape[1]:
            kept = np.flatnonzero(self.models.places(fold, self.smoothing, np.array([size])) == 0)
        return self.plane.view(kept, self.trained(fold))

    def fits(self, view: _View, fold: int | None, ridges: Sequence[float]) -> Iterator[RidgeFit]:
        """Fit the training rows of a fold, or all rows, with each ridge."""
        training = np.flatnonzero(self.trained(fold))
        codes, weights = self.rows.labels[training], self.weights[training]
        return fit_ridges(view.Z[training], codes, weights, ridges, self.n_classes, tol=LARGEST_GAP)

    def scores(self, fold: int, held: HeldOut, ridges: Sequence[float], size: int) -> list[Floats]:
        """Return the conditional scores of the held-out rows of a fold, for each ridge."""
        view = self.view(fold, size)
        rows = view.Z[held.rows]
        return [fit.scores(rows) for fit in self.fits(view, fold, ridges)]

    # ------------------------------------------------------------------ the number of features

    def choose_size(self, sizes: Integers, rule: Rule) -> SizeChoice | None:
        if ENOUGH_TO_COMPARE * self.n_classes * len(sizes) > MOST_NUMBERS:
            sizes = sizes[::-2][::-1]
        affordable = max(MOST_NUMBERS // (self.n_classes * len(sizes)), FEWEST_ROWS)
        held = self.held(sizes, self.folds_of(min(ENOUGH_TO_COMPARE, affordable)))
        if not held or not len(self.plane.columns):
            return None
        conditional = [self.scores_by_size(f, part, sizes) for f, part in held.items()]
        sample = HeldOut.joined(list(held.values()))
        folds = np.repeat(list(held), [len(h) for h in held.values()])
        evidence = np.cumsum(sample.evidence, axis=2)
        losses, right, start = np.empty((len(sizes), len(sample))), np.empty((len(sizes), len(sample))), None
        for place in range(len(sizes)):
            ends = band_places(sizes, place)
            bands = evidence[:, :, ends]
            bands[:, :, 1:] -= evidence[:, :, ends[:-1]]
            scores = np.concatenate([part[place] for part in conditional])[:, :, None]
            tensor = np.concatenate([bounded(bands), bounded(scores)], axis=2)
            same = start is not None and len(start.weights) == tensor.shape[2]
            start = weigh(
                tensor, sample.codes, sample.weights, np.zeros(self.n_classes), start if same else None
            )
            log_p = start.log_posterior(tensor)
            losses[place], right[place] = (
                -log_seen(log_p, sample.codes),
                log_p.argmax(axis=1) == sample.codes,
            )
        place = fewest_features(losses, right, sample.weights, rule)
        path = SelectionPath.by_rows(sizes, right, losses, sample.weights, folds, self.smoothing)
        return SizeChoice(int(sizes[place]), path, float(path.mean_log_loss[place]))

    def scores_by_size(self, fold: int, held: HeldOut, sizes: Integers) -> list[Floats]:
        """Return the conditional scores of the held-out rows of a fold with each number of features."""
        place = self.models.places(fold, self.smoothing, sizes)
        if is_sparse(self.rows.X):
            known = known_features(self.rows.X, self.trained(fold) > 0, self.least_rows)
            place = np.where(known, place, len(sizes))
        view = self.plane.view(np.flatnonzero(place < len(sizes)), self.trained(fold))
        order = np.argsort(place[view.columns], kind="stable")
        ends = np.searchsorted(place[view.columns][order], np.arange(len(sizes)), side="right")
        # Best columns first, so that the features of a size are the first of each row.
        ranked = as_rows(_columns_in_order(view.Z, order)) if is_sparse(view.Z) else view.Z[:, order]
        training = np.flatnonzero(self.trained(fold))
        weights, most = self.weights[training], MOST_LEARNT // self.n_classes
        if len(training) > most:
            hashes = content_hashes(self.rows.X, self.rows.labels[training], training)
            kept, weights = sampled(hashes, weights, most)
            training = training[kept]
        codes, learning, judging = self.rows.labels[training], ranked[training], ranked[held.rows]
        ridges = down_to(PATH_RIDGE)
        *_, fit = fit_ridges(learning, codes, weights, ridges, self.n_classes, tol=LARGEST_GAP, by_size=False)
        out = [fit.scores(judging)]
        for end in ends[-2::-1]:
            learning, judging = self.first_columns(learning, end), self.first_columns(judging, end)
            (fit,) = fit_ridges(
                learning,
                codes,
                weights,
                (PATH_RIDGE,),
                self.n_classes,
                tol=LARGEST_GAP,
                start=fit,
                max_sweeps=PATH_SWEEPS,
                by_size=False,
            )
            out.append(fit.scores(judging))
        return out[::-1]

    def first_columns(self, Z: Matrix, count: int) -> Matrix:
        """Return the first columns, each row as long as before if all have one length."""
        first = _first_columns(Z, count)
        if self.length is None or not is_sparse(Z):
            return first
        before, now = (np.sqrt(row_totals(rows, rows.data.astype(np.float64) ** 2)) for rows in (Z, first))
        factor = np.divide(before, now, out=np.zeros(len(now)), where=now > 0).astype(Z.dtype)
        return sp.csr_array(
            (first.data * np.repeat(factor, np.diff(first.indptr)), first.indices, first.indptr),
            shape=first.shape,
        )

    # ------------------------------------------------------------------ refining

    def solve(self, evidence: Evidence, prior: Floats) -> Evidence:
        """Weigh bands and conditional model together; ``prior`` are the shares of the classes."""
        # Of two folds at least: weights are judged by rows that another fold's have not seen.
        held = self.held(evidence.edges, self.folds_of(ENOUGH_TO_MIX, least=2))
        if len(held) < 2 or not len(self.plane.columns):
            return evidence
        size = int(evidence.edges[-1])
        ridge, scores = self.best_ridge(held, size)
        tensor, mixed = self.mixed(held, scores)
        sample, level = HeldOut.joined(list(held.values())), np.zeros(self.n_classes)
        bands = tensor[:, :, :-1]
        alone = weigh(bands, sample.codes, sample.weights, level)
        gain = sample.weights @ (
            log_seen(mixed.log_posterior(tensor), sample.codes)
            - log_seen(alone.log_posterior(bands), sample.codes)
        )
        # One more weight must be worth one nat, or it is noise.
        if not (mixed.weights[-1] > 0 and gain > 1.0):
            return evidence
        view, strength = self.view(None, size), mixed.weights[-1]
        *_, final = self.fits(view, None, down_to(ridge))
        if not final.converged:
            notice(
                f"the conditional model stopped after {final.n_sweeps} sweeps with a duality gap of "
                f"{final.gap / final.objective:.1%} of its objective: refined evidence may be improved by "
                "scaling the features."
            )
        folds = np.repeat(list(held), [len(h) for h in held.values()])
        log_loss, accuracy, _ = held_out_loss(tensor, sample.codes, sample.weights, folds, level, mixed)
        return replace(
            evidence,
            weights=mixed.weights[:-1],
            bias=mixed.bias + strength * final.bias - log_shares(prior),
            columns=view.columns,
            correction=strength * (final.weights * view.unit[:, None]).T,
            log_loss=log_loss,
            accuracy=accuracy,
            n_rows=float(equal_rows(sample.weights)),
            ridge=ridge,
        )

    def best_ridge(self, held: dict[int, HeldOut], size: int) -> tuple[float, dict[int, Floats]]:
        """Return the ridge that is best beside the bands, and the conditional scores of all folds with it."""
        compared = {f: held[f] for f in self.folds_of(ENOUGH_TO_COMPARE) if f in held}
        tried = {f: self.scores(f, part, RIDGES, size) for f, part in compared.items()}
        by_ridge = [{f: scores[place] for f, scores in tried.items()} for place in range(len(RIDGES))]
        best = least([self.mixed(compared, scores)[1].loss for scores in by_ridge])
        found, ridge = by_ridge[best], RIDGES[best]
        others = {f: self.scores(f, held[f], down_to(ridge), size)[-1] for f in held if f not in found}
        return ridge, found | others

    def mixed(self, held: dict[int, HeldOut], scores: dict[int, Floats]) -> tuple[Floats, SharedWeights]:
        """Return bands and conditional scores of held-out rows, shape (n, C, G + 1), and their weights."""
        sample = HeldOut.joined(list(held.values()))
        conditional = np.concatenate([scores[f] for f in held])[:, :, None]
        tensor = np.concatenate([bounded(sample.evidence), bounded(conditional)], axis=2)
        return tensor, weigh(tensor, sample.codes, sample.weights, np.zeros(self.n_classes))


def band_places(sizes: Integers, place: int) -> Integers:
    """Return where in ``sizes`` the bands of that many features end, at most six; the last is ``place``."""
    ends = np.searchsorted(sizes[: place + 1], band_edges(int(sizes[place])))
    return np.unique(np.minimum(ends, place))


def _columns_in_order(Z: Matrix, order: Integers) -> Matrix:
    """Return the columns of sparse rows in another order."""
    to = np.empty(len(order), dtype=Z.indices.dtype)
    to[order] = np.arange(len(order))
    return sp.csr_array((Z.data, to[Z.indices], Z.indptr), shape=Z.shape)


def _first_columns(Z: Matrix, count: int) -> Matrix:
    """Return the first columns."""
    if not is_sparse(Z):
        return Z[:, :count]
    kept = Z.indices < count
    ends = np.concatenate([[0], np.cumsum(kept, dtype=Z.indptr.dtype)])[Z.indptr]
    return sp.csr_array((Z.data[kept], Z.indices[kept], ends), shape=(Z.shape[0], count))


def down_to(ridge: float) -> Sequence[float]:
    """Return the ridges from the largest to this one: a warm path is shorter than a cold start."""
    return RIDGES[: RIDGES.index(ridge) + 1]


def known_features(X: Matrix, rows: Booleans, least_rows: int | Integers) -> Booleans:
    """Return which features occur in at least ``least_rows`` of some rows, shape (D,)."""
    stored = np.repeat(rows, np.diff(X.indptr)) & (X.data != 0)
    return np.asarray(np.bincount(X.indices[stored], minlength=X.shape[1]) >= least_rows)


def rare_units(Z: Matrix, weight: Floats, factor: Floats | float = 1.0) -> Floats:
    """Return the units of sparse columns, by which rare ones count more; rows have length 1 on average.

    ``factor`` (K,) are further factors of the units.
    """
    total, cells = weight.sum(), np.repeat(weight, np.diff(Z.indptr))
    share = np.bincount(Z.indices, cells, Z.shape[1]) / total
    square = np.bincount(Z.indices, cells * Z.data**2, Z.shape[1]) / total
    unit = factor * np.where(share > 0, 1.0 - np.log(np.where(share > 0, share, 1.0)), 0.0)
    length = np.sqrt(float(unit**2 @ square))
    return unit / (length if length > 0 else 1.0)


def log_shares(prior: Floats) -> Floats:
    """Return the logs of class shares, finite for a class without rows."""
    return np.log(np.maximum(prior, np.finfo(np.float64).tiny))


@dataclass(frozen=True, eq=False)
class _View:
    """Features that the conditional model takes, their units, and all rows in these."""

    columns: Integers
    unit: Floats
    Z: Matrix


@dataclass(frozen=True, eq=False)
class _Plane:
    """The first statistic of all features that are scored by one product, sparse or dense, shape (N, D')."""

    columns: Integers
    values: Matrix
    translates: bool

    @classmethod
    def of(cls, decision: LinearDecision, X: Matrix) -> _Plane:
        near = ~decision.apart(is_sparse(X))
        columns, origin = decision.columns[near], decision.origin[near]
        order = np.argsort(columns)
        columns, origin = columns[order], origin[order]
        values = X if len(columns) == X.shape[1] else X[:, columns]
        if is_sparse(values):
            plane = decision.family.statistics(values)[0].tocsr()
        else:
            values = np.asarray(values, dtype=np.float64)
            missing = np.isnan(values)
            shifted = np.where(missing, 0.5, values - origin)
            plane = np.where(missing, 0.0, decision.family.statistics(shifted)[0])
        return cls(columns, plane, decision.family.translates)

    def view(self, kept: Integers, weight: Floats) -> _View:
        """Some columns, in units in which a correction of each costs the same.

        Measurements count in deviations. Counts have one unit, and those that are rarely above 0 count more,
        as in tf-idf: by ``1 - log p``, with p the share of cells that are not 0. Rows have length 1 on
        average.
        """
        at = np.flatnonzero(np.isin(self.columns, kept)) if len(kept) < len(self.columns) else None
        plane = self.values if at is None else self.values[:, at]
        columns = self.columns if at is None else self.columns[at]
        total = weight.sum()
        if is_sparse(plane):
            cells = np.repeat(weight, np.diff(plane.indptr))
            share = np.bincount(plane.indices, cells, plane.shape[1]) / total
            square = np.bincount(plane.indices, cells * plane.data**2, plane.shape[1]) / total
        else:
            share, square = weight @ (plane != 0) / total, weight @ plane**2 / total
        if self.translates:
            mean = np.asarray(weight @ plane).ravel() / total
            square = np.maximum(square - mean**2, 1e-12 * square)
            unit = 1.0 / np.sqrt(np.where(square > 0, square, 1.0))
        else:
            unit = np.where(share > 0, 1.0 - np.log(np.where(share > 0, share, 1.0)), 0.0)
        length = np.sqrt(float(unit**2 @ square))
        unit = unit / (length if length > 0 else 1.0)
        if is_sparse(plane):
            scaled = plane.copy()
            scaled.data = scaled.data * unit[scaled.indices]
        else:
            scaled = plane * unit
        return _View(columns, unit, scaled)
