"""Evidence of rows of every length: densities and a conditional model of selected features, weighed together.

Sparse rows of one Euclidean length, such as those of documents, are scaled anew over the selected features.
Three scores are linear in these: the log-likelihood of each class, that of all other classes together (which
counts against the class), and the conditional model's. Held-out rows and shorter copies of them give the
weight of each, and the biases of the classes, for rows of any number of features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.calibration.evidence import (
    Evidence,
    calibrate,
    equal_rows,
    held_out_loss,
    least,
    weigh,
)
from maxdisc.calibration.refinement import (
    ENOUGH_SCORES,
    ENOUGH_TO_COMPARE,
    ENOUGH_TO_MIX,
    LARGEST_GAP,
    RIDGES,
    Refinable,
    down_to,
    known_features,
    log_shares,
    rare_units,
)
from maxdisc.conditional.coordinate_ascent import TINY, RidgeFit, fit_ridges
from maxdisc.conditional.shared_weights import SharedWeights
from maxdisc.decisions.by_length import LengthWeights, hats, select_features
from maxdisc.decisions.linear import LinearDecision, log_partitions, unknown_decision
from maxdisc.densities.class_densities import class_prior
from maxdisc.families import Family
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Booleans, Floats, Integers, Matrix, blocks
from maxdisc.numerics.user_warnings import notice
from maxdisc.rows.row_sources import LEFT_OUT, ArrayRows, row_hashes, scrambled
from maxdisc.selection.fold_models import Choice
from maxdisc.selection.held_out import BandTrial, HeldOut, band_edges, bounded

#: Numbers of features at which weights are learnt, from one to almost the most that held-out rows have.
N_COUNTS = 7
LONG = 0.98
#: Copies differ by up to this factor from the number of features that they are made for.
SPREAD = 1.5
#: The unit of a feature in the ridge is multiplied by this power of the spread of its densities, ...
ADAPTED = 0.25
#: ... which is at least this share of the largest: the conditional model may correct any feature.
LEAST_SPREAD = 1e-4
#: Up to this many parameters are not rounded: in small models, weights and repetition agree to nine digits.
FEW_VALUES = 2**10
#: Rows that are this short by themselves count more than copies: they may be of another kind.
COPY_WEIGHT = 0.1


class Shorten(Protocol):
    """Make shorter rows of some rows, such as pieces of documents."""

    def __call__(self, rows: Integers, share: Floats, copy: Integers) -> Matrix:
        """Return rows (n, D) with about this share of the features of each row; equal rows have equal copies.

        ``copy`` (n,) are the numbers of the copies, where a row has several.
        """


@dataclass(frozen=True, eq=False)
class ThinnedRows:
    """Shorter copies of sparse rows, of which each cell is kept with some probability."""

    X: Matrix

    def __call__(self, rows: Integers, share: Floats, copy: Integers) -> Matrix:
        """Return copies whose cells are kept by a hash of the row's content, the column and the copy."""
        some = self.X[rows]
        stored = np.diff(some.indptr)
        mixed = np.repeat(row_hashes(self.X, rows) + uniform_seeds(copy), stored)
        chance = to_unit(scrambled(mixed ^ (some.indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))))
        kept = chance < np.repeat(share, stored)
        ends = np.concatenate([[0], np.cumsum(kept)])[some.indptr]
        return sp.csr_array((some.data[kept], some.indices[kept], ends), shape=some.shape)


def uniform_seeds(copy: Integers) -> npt.NDArray[np.uint64]:
    """Return numbers by which copies of one row differ."""
    return scrambled(copy.astype(np.uint64) + np.uint64(1))


def to_unit(hashes: npt.NDArray[np.uint64]) -> Floats:
    """Return numbers in [0, 1) from hashes."""
    return np.asarray((hashes >> np.uint64(11)) * 2.0**-53)


@dataclass(frozen=True, eq=False)
class _Model:
    """Densities of selected features, from rows that are scaled over these."""

    columns: Integers  # (K,) best bands first
    edges: Integers  # (G,)
    Z: Matrix  # (N, K), of Euclidean length 1
    moments: ClassMoments
    decision: LinearDecision
    rest: npt.NDArray[np.float32]  # (C, K): natural parameters of all classes but one
    trained: Floats  # (N,)
    unit: Floats  # (K,)

    def scores(self, rows: Matrix, strength: Floats, fits: Sequence[RidgeFit]) -> list[Floats]:
        """Return the three scores (n, C, 3) of unit rows, for each fit.

        ``strength`` (K,) are the calibrated weights of the densities of unit rows.
        """
        scaled, weighed = _times(rows, self.unit), _times(rows, strength)
        own, rest = (np.asarray(weighed @ table.T) for table in (self.decision.weights[0], self.rest))
        return [bounded(np.stack([own, -rest, fit.scores(scaled)], axis=2)) for fit in fits]

    def correction(self, weights: Floats, strength: Floats, fit: RidgeFit) -> Floats:
        """Return the last two of the scores, times their weights, for rows of unit length, shape (C, K).

        They are centred, so that 0 is fair to classes that ``partial_fit`` adds.
        """
        _, of_rest, of_fit = weights
        both = of_fit * (fit.weights * self.unit[:, None]).T - of_rest * strength * self.rest
        return np.asarray(both - both.mean(axis=0))


def _times(rows: Matrix, unit: Floats) -> Matrix:
    return sp.csr_array((rows.data * unit[rows.indices], rows.indices, rows.indptr), shape=rows.shape)


@dataclass(frozen=True, eq=False)
class SelectedFolds:
    """Models of the features that the training rows of each fold select; see :class:`HeldOutTrials`."""

    models: Refinable
    rows: ArrayRows
    smoothing: Smoothing
    size: int
    length: float
    order: Integers  # (D,)
    prior: Floats | None
    #: Rows that a feature must have to be known, of all features or each.
    least_rows: int | Integers = 1

    @property
    def family(self) -> Family:
        """The one family of all features."""
        return cast(Family, self.models.family)

    @cached_property
    def fold(self) -> Integers:
        """The fold that holds out each row."""
        return self.models.plans[0].of(self.rows.X, self.rows.start)

    @cached_property
    def weights(self) -> Floats:
        """The weights of the rows."""
        return np.ones(self.rows.X.shape[0]) if self.rows.weights is None else self.rows.weights

    @cached_property
    def telling(self) -> Booleans:
        """Classes with at least two rows: of others nothing is known while their row is held out."""
        held = (self.weights > 0) & (self.fold != LEFT_OUT)
        return np.bincount(self.rows.labels[held], minlength=self.rows.n_classes) >= 2

    @cached_property
    def held(self) -> Floats:
        """How many rows each of the folds holds out that weights are learnt from."""
        of_fold = np.bincount(self.fold[self.fold >= 0], minlength=self.models.plans[0].count)
        # Of one fold alone nothing could be compared.
        enough = max(int(np.searchsorted(np.cumsum(of_fold), ENOUGH_TO_MIX)) + 1, 2)
        return of_fold[:enough].astype(np.float64)

    @cached_property
    def _made(self) -> dict[int | None, _Model]:
        return {}

    def model(self, fold: int | None) -> _Model:
        """Return the model of the training rows of a fold, or of all rows."""
        if fold not in self._made:
            self._made[fold] = self._make(fold)
        return self._made[fold]

    def _make(self, fold: int | None) -> _Model:
        rows, edges = self.rows, band_edges(self.size)
        if fold is None:
            trained = self.weights
            place = np.full(rows.X.shape[1], len(edges))
            place[self.order[: self.size]] = np.searchsorted(edges, np.arange(self.size), side="right")
        else:
            trained = np.where((self.fold == fold) | (self.fold == LEFT_OUT), 0.0, self.weights)
            place = self.models.places(fold, self.smoothing, edges)
        known = known_features(rows.X, trained > 0, self.least_rows)
        order = np.argsort(place, kind="stable") if fold is not None else self.order[: self.size]
        columns = order[(place[order] < len(edges)) & known[order]]
        per_band = np.bincount(place[columns], minlength=len(edges))
        edges = np.cumsum(per_band)
        Z = select_features(rows.X, columns, 1.0)
        X = sp.csr_array((self.length * Z.data, Z.indices, Z.indptr), shape=Z.shape)
        (moments, *_) = ArrayRows(X, rows.labels, rows.n_classes, trained).moments(self.family)
        every = np.arange(len(columns))
        decision = in_single(LinearDecision.of(self.family, moments, self.smoothing, every, self.prior))
        natural = decision.weights[0]
        rest = self._rest(moments)
        apart = spread(natural, class_prior(moments, None))
        unit = rare_units(Z, trained, np.maximum(apart, LEAST_SPREAD * apart.max(initial=TINY)) ** ADAPTED)
        return _Model(columns, edges, Z, moments, decision, rest, trained, unit)

    def _rest(self, moments: ClassMoments) -> npt.NDArray[np.float32]:
        """Return the natural parameters of all classes but one; zeros for two classes, which say it all."""
        if moments.n_classes == 2:
            return np.zeros(moments.sums.shape[1:], dtype=np.float32)
        # The rest has most of the rows and needs little smoothing: `amount` pseudo-rows, and not
        # `amount / p`, since `rest` does not know the shares p of cells that are not zero.
        smoothing, every = replace(self.smoothing, target="own"), np.arange(moments.n_features)
        rest = LinearDecision.of(self.family, moments.rest(), smoothing, every, self.prior).weights[0]
        return rest.astype(np.float32)

    # ------------------------------------------------------------------ as HeldOutTrials

    def held_out(
        self, edges: Integers, smoothings: Sequence[Smoothing], most: int, chosen: range | None = None
    ) -> list[dict[int, HeldOut]]:
        """Return the evidence of bands of features for held-out rows; of the one smoothing."""
        del edges, smoothings
        found = {fold: self._held_out(fold, most) for fold in chosen or range(len(self.held))}
        return [{fold: part for fold, part in found.items() if part is not None}]

    def _held_out(self, fold: int, most: int) -> HeldOut | None:
        model, at = self.model(fold), np.flatnonzero(self.fold == fold)
        if not len(at) or not len(model.columns) or not model.trained.any():
            return None
        X = model.Z[at] * self.length
        trial = BandTrial(model.decision, most, whole=True)
        part = trial.swept(X, self.rows.labels[at], self.weights[at], model.edges, np.arange(len(at)))
        return replace(part, rows=at[part.rows])

    def unknown(
        self, edges: Integers, smoothing: Smoothing, most: int, held: dict[int, HeldOut]
    ) -> dict[int, Floats] | None:
        """Return the evidence of the same rows for unknown classes, by the number of the fold."""
        del edges, most
        out = {}
        for fold, part in held.items():
            model = self.model(fold)
            every = np.arange(len(model.columns))
            unknown = unknown_decision(self.family, model.moments, smoothing, every)
            out[fold] = unknown.by_bands(model.Z[part.rows] * self.length, model.edges)
        return out

    # ------------------------------------------------------------------ evidence and conditional model

    def strength(self, model: _Model, evidence: Evidence) -> Floats:
        """Return the calibrated weights of the densities of features, for unit rows, shape (K,)."""
        return np.repeat(evidence.weights * self.length, np.diff(model.edges, prepend=0))

    def fits(self, model: _Model, ridges: Sequence[float]) -> Iterator[RidgeFit]:
        """Fit the conditional model to the training rows with each ridge."""
        training = np.flatnonzero(model.trained)
        codes, weights = self.rows.labels[training], model.trained[training]
        Z = _times(model.Z[training], model.unit)
        return fit_ridges(Z, codes, weights, ridges, self.rows.n_classes, tol=LARGEST_GAP)


def spread(natural: Floats, share: Floats) -> Floats:
    """Return the standard deviations of natural parameters (C, K) over classes with these shares (C,)."""
    return np.asarray(np.sqrt(share @ (natural - share @ natural) ** 2))


def _as_planes(tensor: Floats, weights: Floats) -> Floats:
    """Return scores (n, C, 2) of evidence and correction, times the weights of full rows."""
    return np.stack([tensor[:, :, 0] * weights[0], tensor[:, :, 1:] @ weights[1:]], axis=2)


def in_single(decision: LinearDecision) -> LinearDecision:
    """Round natural parameters to single precision, so that a file needs a quarter of the bytes."""
    weights = rounded(decision.weights)
    return replace(decision, weights=weights, baseline=log_partitions(decision.family, weights))


def rounded(values: Floats) -> Floats:
    """Return values that single precision can hold, which halves a file; few values keep all their digits."""
    return values if values.size <= FEW_VALUES else values.astype(np.float32).astype(np.float64)


def refine_by_length(
    folds: SelectedFolds, choice: Choice, prior: Floats, shorten: Shorten
) -> tuple[Evidence, LinearDecision, LinearDecision] | None:
    """Return evidence with weights by length, the decision of all rows, and that among unknown classes.

    ``prior`` are the shares of the classes. None where held-out rows are too few.
    """
    fixed = calibrate(folds, (choice.smoothing,), band_edges(folds.size), prior, fixed=True)
    if fixed is None or len(folds.held) < 2:
        return None
    return _ByLength(folds, fixed[1], prior, shorten).solve()


@dataclass(frozen=True, eq=False)
class _ByLength:
    folds: SelectedFolds
    evidence: Evidence
    prior: Floats
    shorten: Shorten

    @property
    def n_classes(self) -> int:
        return self.folds.rows.n_classes

    @cached_property
    def level(self) -> Floats:
        return log_shares(self.prior)

    @cached_property
    def held(self) -> dict[int, Integers]:
        """The held-out rows of each fold that are looked at."""
        folds, most = self.folds, max(ENOUGH_SCORES // self.n_classes, 500)
        out = {}
        for fold in range(len(folds.held)):
            at = np.flatnonzero((folds.fold == fold) & folds.telling[folds.rows.labels] & (folds.weights > 0))
            if len(at) > most:
                at = np.sort(at[np.argsort(row_hashes(folds.rows.X, at), kind="stable")[:most]])
            if len(at) and folds.model(fold).trained.any():
                out[fold] = at
        return out

    def weigh(
        self, tensor: Floats, codes: Integers, weights: Floats, start: SharedWeights | None = None
    ) -> SharedWeights:
        return weigh(tensor, codes, weights, self.level, start)

    def solve(self) -> tuple[Evidence, LinearDecision, LinearDecision] | None:
        """Choose the ridge, learn the weights, and fit all rows."""
        if len(self.held) < 2:
            return None
        folds = self.folds
        ridge, fits, tensors = self.best_ridge()
        at = np.concatenate(list(self.held.values()))
        codes, row_weights = folds.rows.labels[at], folds.weights[at]
        tensor = np.concatenate([tensors[f] for f in self.held])
        whole = self.weigh(tensor, codes, row_weights)
        lengths = self.learn(fits, tensor, whole)
        of_fold = np.repeat(list(self.held), [len(rows) for rows in self.held.values()])
        log_loss, accuracy, _ = held_out_loss(tensor, codes, row_weights, of_fold, self.level, whole)
        model = folds.model(None)
        *_, final = folds.fits(model, down_to(ridge))
        if not final.converged:
            notice(
                f"the conditional model stopped after {final.n_sweeps} sweeps with a duality gap of "
                f"{final.gap / final.objective:.1%} of its objective."
            )
        # The bias of the conditional model is that of all rows: part of the biases of each length.
        lengths = replace(lengths, bias=lengths.bias + lengths.weights[:, 1:] * whole.weights[2] * final.bias)
        strength = folds.strength(model, self.evidence)
        evidence = replace(
            self.evidence,
            edges=model.edges,
            bias=np.zeros(self.n_classes),
            columns=model.columns,
            correction=rounded(model.correction(whole.weights, strength, final) / folds.length),
            log_loss=log_loss,
            accuracy=accuracy,
            n_rows=float(equal_rows(row_weights)),
            ridge=ridge,
            lengths=lengths,
        )
        every = np.arange(len(model.columns))
        unknown = in_single(unknown_decision(folds.family, model.moments, folds.smoothing, every))
        decision = replace(model.decision, columns=model.columns)
        return evidence, decision, replace(unknown, columns=model.columns)

    def best_ridge(self) -> tuple[float, dict[int, RidgeFit], dict[int, Floats]]:
        """Return the ridge that is best beside the evidence, and each fold's fit and scores with it."""
        counts = np.cumsum([len(rows) for rows in self.held.values()])
        compared = list(self.held)[: int(np.searchsorted(counts, ENOUGH_TO_COMPARE)) + 1]
        fits = {f: list(self.folds.fits(self.folds.model(f), RIDGES)) for f in compared}
        scores = {f: self.scores(f, fits[f]) for f in compared}
        at = np.concatenate([self.held[f] for f in compared])
        codes, weights = self.folds.rows.labels[at], self.folds.weights[at]
        by_ridge = [np.concatenate([scores[f][r] for f in compared]) for r in range(len(RIDGES))]
        best = least([self.weigh(tensor, codes, weights).loss for tensor in by_ridge])
        chosen = {f: fits[f][best] for f in compared}
        tensors = {f: scores[f][best] for f in compared}
        for f in self.held:
            if f not in chosen:
                *_, chosen[f] = self.folds.fits(self.folds.model(f), down_to(RIDGES[best]))
                (tensors[f],) = self.scores(f, [chosen[f]])
        return RIDGES[best], chosen, tensors

    def scores(self, fold: int, fits: Sequence[RidgeFit]) -> list[Floats]:
        model = self.folds.model(fold)
        return model.scores(model.Z[self.held[fold]], self.folds.strength(model, self.evidence), fits)

    def learn(self, fits: dict[int, RidgeFit], tensor: Floats, whole: SharedWeights) -> LengthWeights:
        """Learn weights and biases at some numbers of features from held-out rows and shorter copies."""
        folds = self.folds
        stored = {f: np.diff(folds.model(f).Z.indptr)[rows] for f, rows in self.held.items()}
        longest = np.quantile(np.concatenate(list(stored.values())), LONG)
        counts: Floats = np.unique(np.round(np.geomspace(1, max(longest, 2), N_COUNTS))).astype(np.float64)
        parts = [
            (
                _as_planes(tensor, whole.weights),
                np.concatenate(list(self.held.values())),
                np.concatenate(list(stored.values())),
            )
        ]
        for fold, rows in self.held.items():
            parts += self.copies(fold, rows, stored[fold], fits[fold], counts[:-1], whole.weights)
        tensors, at, n_features = (np.concatenate(values) for values in zip(*parts, strict=True))
        del parts
        codes, weights = folds.rows.labels[at], folds.weights[at]
        weights[len(tensor) :] *= COPY_WEIGHT
        # Shares of the weights that full rows have, so that the ridge draws towards these.
        hat, found = hats(n_features, counts) * weights[:, None], []
        start = replace(whole, weights=np.ones(2))
        for some in hat.T[::-1]:
            near = some > 0
            # Where no row has about so many features, the weights are those of more features.
            start = self.weigh(tensors[near], codes[near], some[near], start) if near.any() else start
            found.append(start)
        shares = np.stack([fit.weights * [whole.weights[0], 1.0] for fit in found[::-1]])
        biases = np.stack([fit.bias - self.level for fit in found[::-1]])
        nothing = np.zeros((1, self.n_classes))
        return LengthWeights(
            np.append(0.0, counts),
            np.concatenate([np.zeros((1, 2)), shares]),
            np.concatenate([nothing, biases]),
            folds.length,
        )

    def copies(
        self,
        fold: int,
        rows: Integers,
        stored: Integers,
        fit: RidgeFit,
        counts: Floats,
        weights: Floats,
    ) -> Iterator[tuple[Floats, Integers, Integers]]:
        """Yield scores, rows and numbers of features of shorter copies of held-out rows, for each count."""
        model, copy = self.folds.model(fold), np.repeat(np.arange(len(counts)), len(rows))
        strength = self.folds.strength(model, self.evidence)
        of_row = np.tile(np.arange(len(rows)), len(counts))
        hashes = row_hashes(self.folds.rows.X, rows)[of_row] + uniform_seeds(copy)
        jitter = SPREAD ** (2 * to_unit(scrambled(hashes)) - 1)
        share = np.minimum(counts[copy] * jitter / np.maximum(stored[of_row], 1), 1.0)
        short = np.flatnonzero(share < 0.8)
        # Many at once: to count a few words takes as long as to look up the vocabulary.
        for block in blocks(len(short), max(1 + int(stored.mean()), 3 * self.n_classes)):
            some = short[block]
            shorter = self.shorten(rows[of_row[some]], share[some], copy[some])
            shorter = select_features(shorter, model.columns, 1.0)
            n_features = np.diff(shorter.indptr)
            kept = np.flatnonzero(n_features)
            (tensor,) = model.scores(shorter[kept], strength, [fit])
            yield _as_planes(tensor, weights), rows[of_row[some[kept]]], n_features[kept]
