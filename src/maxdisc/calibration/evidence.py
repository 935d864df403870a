"""Evidence that is weighed: a conditional maximum-entropy model over what generative models say out of fold.

Features are not independent, so their evidence adds up to more than it should. How much more differs between
the best features and the rest, and can be seen on held-out rows. Calibrated evidence cuts the ranking into
bands and gives each a weight; refined evidence also corrects single features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeVar, cast

import numpy as np

from maxdisc.calibration.novelty import Novelty
from maxdisc.conditional.corrections import ScaledRows, correct
from maxdisc.conditional.model import log_posterior
from maxdisc.conditional.shared_weights import SharedWeights, doubt, shared_weights, shared_weights_of_all
from maxdisc.decisions.linear import LinearDecision
from maxdisc.decisions.mixed import MixedDecision
from maxdisc.families.blocks import AnyMoments
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Booleans, Floats, Integers, Matrix, is_sparse
from maxdisc.selection.fold_models import Choice, Rule, SelectionPath, Trials, enough_folds
from maxdisc.selection.held_out import FARTHEST, HeldOut, bounded, enough_rows

_Weighable = TypeVar("_Weighable", LinearDecision, MixedDecision)

#: A best smoothing at the end of the list is followed further in steps of this, ...
FURTHER = 5.0
#: ... so many times.
STEPS_FURTHER = 2
#: What the correction of single features starts from, as shares of calibrated evidence, and its ridges, in
#: rows. All of the evidence would count the rows twice; none of it leaves all to the correction, which is
#: best where classes are many and of very different sizes.
TRIED = ((0.5, 1.0), (0.5, 0.3), (0.5, 0.1), (0.0, 0.3), (0.0, 0.1))
#: They are compared on folds that hold out so many rows, fitted to at most so many, ...
ENOUGH_TO_COMPARE = 500
MOST_TO_COMPARE = 4000
#: ... and the best is mixed with the evidence on folds that hold out so many.
ENOUGH_TO_MIX = 4000
#: With so many rows for each parameter, weights may have seen the rows that they are judged by.
MANY_ROWS = 50
#: Weights of several models are learnt together where that takes at most this many numbers.
FEW_NUMBERS = 2**18
#: More folds than this are put together: models are made for every pair of them.
MOST_FOLDS = 10
#: All the rows.
ALL_ROWS = 2**62


@dataclass(frozen=True, eq=False)
class HeldLosses:
    """Log-loss of each held-out row, fold by fold, under evidence weights fitted without the row."""

    losses: Floats  # (n,)
    weights: Floats  # (n,)


@dataclass(frozen=True, eq=False)
class Evidence:
    """How much the evidence of features counts, learnt on rows that were held out.

    Parameters
    ----------
    edges : ndarray of shape (G,)
        Where the bands of the ranking end.
    weights : ndarray of shape (G,)
        By what the evidence of each band is multiplied, at least 0.
    bias : ndarray of shape (C,)
        Added to the log prior.
    columns : ndarray of shape (R,), optional
        The features that are corrected; None where evidence is only calibrated.
    correction : ndarray of shape (C, R), optional
        Added to the weights of the first statistic of these features.
    log_loss, accuracy : float
        On the held-out rows.
    n_rows : float
        How many rows of equal weight these are.
    ridge : float
        Of the correction; 0 where there is none.
    novelty : Novelty, optional
        How well held-out rows fit the classes, before any correction.
    by_row : HeldLosses, optional
        The log-loss of each held-out row, before any correction; models from files have none.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.calibration import Evidence
    >>> evidence = Evidence(np.array([2, 5]), np.array([0.8, 0.3]), np.zeros(2))
    >>> evidence.strength(4)
    array([0.8, 0.8, 0.3, 0.3])
    """

    edges: Integers
    weights: Floats
    bias: Floats
    columns: Integers | None = None
    correction: Floats | None = None
    log_loss: float = np.nan
    accuracy: float = np.nan
    n_rows: float = 0.0
    ridge: float = 0.0
    novelty: Novelty | None = None
    by_row: HeldLosses | None = None

    def __repr__(self) -> str:
        corrected = "" if self.columns is None else f", {len(self.columns)} features corrected"
        return (
            f"Evidence({len(self.edges)} bands, weights {np.array2string(self.weights, precision=3)}"
            f"{corrected}, held-out log-loss {self.log_loss:.4f}, accuracy {self.accuracy:.4f})"
        )

    def strength(self, size: int) -> Floats:
        """Return the weight of each of the best ``size`` features, shape (size,)."""
        return np.repeat(self.weights, np.diff(self.edges, prepend=0))[:size]

    def applied(self, decision: _Weighable) -> _Weighable:
        """Return the decision, weighed; its columns may have changed since the evidence was learnt.

        Parameters
        ----------
        decision : LinearDecision or MixedDecision
            Of generative densities, best features first.

        Returns
        -------
        LinearDecision or MixedDecision
            As linear as before.
        """
        correction = None
        if self.columns is not None and self.correction is not None:
            order = np.argsort(self.columns)
            place = np.searchsorted(self.columns, decision.columns, sorter=order)
            at = order[np.minimum(place, len(order) - 1)]
            known = self.columns[at] == decision.columns
            correction = np.where(known, self.correction[:, at], 0.0)
        return decision.weighed(self.strength(len(decision.columns)), self.bias, correction)

    def reindexed(self, positions: Integers, n_classes: int) -> Evidence:
        """For more classes, of which those here have the positions given; new ones are left alone."""
        bias, correction = np.zeros(n_classes), None
        bias[positions] = self.bias
        if self.correction is not None:
            correction = np.zeros((n_classes, self.correction.shape[1]))
            correction[positions] = self.correction
        novelty = None if self.novelty is None else self.novelty.reindexed(positions, n_classes)
        return replace(self, bias=bias, correction=correction, novelty=novelty)


def calibrate(
    models: Trials,
    smoothings: Sequence[Smoothing],
    edges: Integers,
    prior: Floats,
    rule: Rule = "best",
    fixed: bool = False,
) -> tuple[Choice, Evidence] | None:
    """Choose smoothing and number of features by calibrated log-loss, and fit the band weights.

    Returns None if there are too few held-out rows, or too few classes among them.
    """
    most = enough_rows(len(prior), len(models.held))
    # Where the first folds have too few classes (rows may be sorted), all of them may do.
    for n_folds in (enough_folds(models, len(smoothings)), len(models.held)):
        first, rest = range(n_folds), range(n_folds, len(models.held))
        tried = list(zip(smoothings, models.held_out(edges, smoothings, most, first), strict=True))
        problems = [_Bands.of(by_fold, edges, prior) for _, by_fold in tried]
        if problems[0] is not None or not rest:
            break
    if problems[0] is None:
        return None
    losses = [0.0]
    if len(smoothings) > 1:
        # All have the same rows.
        samples = [problem.sample.evidence for problem in problems if problem is not None]
        found = problems[0].all_fitted(samples)
        losses = [each.loss for each in found]
        for _ in range(STEPS_FURTHER):
            last = tried[-1][0]
            if _least(losses) != len(losses) - 1 or last.amount == 0:
                break
            further = Smoothing(FURTHER * last.amount, last.target)
            (by_fold,) = models.held_out(edges, (further,), most, first)
            problem = _Bands.of(by_fold, edges, prior)
            assert problem is not None
            tried.append((further, by_fold))
            found = problem.all_fitted([problem.sample.evidence], start=found[-1])
            losses.append(found[-1].loss)
    smoothing, by_fold = tried[_least(losses)]
    del tried, problems
    if rest:
        (others,) = models.held_out(edges, (smoothing,), most, rest)
        by_fold = by_fold | others
    bands = _Bands.of(by_fold, edges, prior)
    if bands is None:
        return None
    path, fits = bands.path(smoothing, fixed)
    best = path.best_position(rule, "log_loss")
    size = int(path.sizes[best])
    weights, bias = fits[best]
    log_loss, accuracy, by_row = bands.judged(weights, bias)
    evidence = Evidence(
        edges[: len(weights)],
        weights,
        bias,
        log_loss=log_loss,
        accuracy=accuracy,
        n_rows=float(path.n_rows.sum()),
        novelty=bands.novelty(weights, bias, models.unknown(edges, smoothing, most, by_fold)),
        by_row=by_row,
    )
    return Choice(smoothing, size, path), evidence


@dataclass(frozen=True, eq=False)
class _Bands:
    """Held-out evidence of all folds, and the classes that can be learnt from it."""

    sample: HeldOut
    folds: Integers
    edges: Integers
    log_prior: Floats
    #: The evidence (n, G) of the best class in each band, which was taken out.
    best: Floats
    #: Which of all rows these are.
    telling: Booleans

    @classmethod
    def of(cls, by_fold: dict[int, HeldOut], edges: Integers, prior: Floats) -> _Bands | None:
        if not by_fold:
            return None
        sample = HeldOut.joined([part.levelled() for part in by_fold.values()])
        folds = np.repeat(list(by_fold), [len(part) for part in by_fold.values()])
        # Of a class with a single row nothing is known while that row is held out.
        counts = np.bincount(sample.codes[sample.weights > 0], minlength=len(prior))
        telling = (counts >= 2)[sample.codes] & (sample.weights > 0)
        if (counts >= 2).sum() < 2 or telling.sum() < len(edges) + len(prior):
            return None
        with np.errstate(divide="ignore"):
            log_prior = np.maximum(np.log(prior), np.log(np.finfo(np.float64).tiny))
        sample = sample.select(telling)
        best = sample.evidence.max(axis=1)
        sample = replace(sample, evidence=bounded(sample.evidence))
        return cls(sample, folds[telling], edges, log_prior, best, telling)

    def all_fitted(
        self, tensors: list[Floats], sizes: Sequence[int] | None = None, start: SharedWeights | None = None
    ) -> list[SharedWeights]:
        """Weights of the bands of each tensor, or of the first 1, 2, ... of one; each starts at the last."""
        sample = self.sample
        return _all_weighed(tensors, sample.codes, sample.weights, self.log_prior, sizes, start)

    def path(self, smoothing: Smoothing, fixed: bool) -> tuple[SelectionPath, list[tuple[Floats, Floats]]]:
        """Log-loss and accuracy with the first 1, 2, ... bands, and the weights and biases of each."""
        sizes = range(len(self.edges) if fixed else 1, len(self.edges) + 1)
        numbers, places = np.unique(self.folds, return_inverse=True)

        def summed(values: Floats) -> Floats:
            return np.bincount(places, values, len(numbers)).astype(np.float64)

        weight = summed(self.sample.weights)
        accuracy, log_loss = np.empty((2, len(numbers), len(sizes)))
        fits: list[tuple[Floats, Floats]] = []
        every = self.all_fitted([self.sample.evidence], sizes)
        for place, (size, found) in enumerate(zip(sizes, every, strict=True)):
            log_p = found.log_posterior(self.sample.evidence[:, :, :size])
            right, seen = log_p.argmax(axis=1) == self.sample.codes, _seen(log_p, self.sample.codes)
            accuracy[:, place] = summed(self.sample.weights * right) / weight
            log_loss[:, place] = -summed(self.sample.weights * seen) / weight
            fits.append((found.weights, found.bias - self.log_prior))
        edges = self.edges[np.array(sizes) - 1]
        accuracy = np.clip(accuracy, 0.0, 1.0)
        # Squares of tiny weights vanish, so weights are counted in units of the largest of their fold.
        largest = np.zeros(len(numbers))
        np.maximum.at(largest, places, self.sample.weights)
        share = self.sample.weights / largest[places]
        n_rows = summed(share) ** 2 / summed(share**2)
        return SelectionPath(edges, accuracy, log_loss, weight, n_rows, smoothing), fits

    def judged(self, weights: Floats, bias: Floats) -> tuple[float, float, HeldLosses]:
        """Log-loss, accuracy, and losses of rows, of weights that have not seen the rows that judge them."""
        sample, start = self.sample, SharedWeights(weights, bias + self.log_prior, np.nan, True)
        tensor = sample.evidence[:, :, : len(weights)]
        given = (tensor, sample.codes, sample.weights, self.folds, self.log_prior, start)
        log_loss, accuracy, losses = _judged(*given)
        order = np.lexsort((sample.rows, self.folds))
        return log_loss, accuracy, HeldLosses(losses[order], sample.weights[order])

    def novelty(self, weights: Floats, bias: Floats, unknown: dict[int, Floats] | None) -> Novelty | None:
        """Return how well the rows fit the classes; None where there is nothing to compare these with."""
        if unknown is None:
            return None
        size = len(weights)
        with np.errstate(invalid="ignore"):
            above = np.concatenate(list(unknown.values()))[self.telling] - self.best[:, None]
        beside = np.nan_to_num(np.clip(above, -FARTHEST, FARTHEST), nan=FARTHEST)
        given = (self.sample.evidence[:, :, :size], beside[:, :, :size], self.sample.weights)
        return Novelty.learnt(*given, weights, bias + self.log_prior)


def _weighed(
    tensor: Floats,
    codes: Integers,
    weights: Floats,
    bias_center: Floats,
    start: SharedWeights | None = None,
) -> SharedWeights:
    """Shared weights, in doubt of what so few rows cannot tell."""
    return shared_weights(tensor, codes, weights, bias_center, start=start, doubt=doubt(float(weights.sum())))


def _all_weighed(
    tensors: list[Floats],
    codes: Integers,
    weights: Floats,
    bias_center: Floats,
    sizes: Sequence[int] | None = None,
    start: SharedWeights | None = None,
) -> list[SharedWeights]:
    """Shared weights of each tensor, or of the first features of one; few numbers are worked on at once."""
    if max(len(tensors), len(sizes or ())) * tensors[0].size <= FEW_NUMBERS:
        doubted = doubt(float(weights.sum()))
        wanted = None if sizes is None else np.array(sizes)
        return shared_weights_of_all(
            np.stack(tensors), codes, weights[None], bias_center, wanted, start=start, doubts=doubted
        )
    out: list[SharedWeights] = []
    for tensor in tensors if sizes is None else [tensors[0][:, :, :size] for size in sizes]:
        out.append(_weighed(tensor, codes, weights, bias_center, out[-1] if out else start))
    return out


def _judged(
    tensor: Floats,
    codes: Integers,
    weights: Floats,
    folds: Integers,
    bias_center: Floats,
    start: SharedWeights | None = None,
) -> tuple[float, float, Floats]:
    """Log-loss, accuracy, and losses of rows, of shared weights, those of each fold learnt from the others.

    A few parameters make fifty rows look better than they are; models that are compared by their losses must
    not gain by that. Where rows are many more than parameters, all of them may learn.
    """
    whole = _weighed(tensor, codes, weights, bias_center, start)
    log_p = whole.log_posterior(tensor)
    groups = np.unique(folds, return_inverse=True)[1] % MOST_FOLDS
    if len(codes) > MANY_ROWS * (tensor.shape[1] + tensor.shape[2]):
        groups = np.zeros_like(groups)
    parts = [groups != group for group in range(int(groups.max()) + 1)]
    parts = [p for p in parts if p.any() and not p.all() and np.isin(codes[~p], codes[p]).all()]
    if len(parts) * tensor.size <= FEW_NUMBERS and parts:
        some = weights * np.array(parts)
        doubts = doubt(some.sum(axis=1))
        fits = shared_weights_of_all(tensor[None], codes, some, bias_center, start=whole, doubts=doubts)
    else:
        fits = [_weighed(tensor[p], codes[p], weights[p], bias_center, whole) for p in parts]
    for others, found in zip(parts, fits, strict=True):
        log_p[~others] = found.log_posterior(tensor[~others])
    total = weights.sum()
    right = log_p.argmax(axis=1) == codes
    losses = -_seen(log_p, codes)
    accuracy = min(float(weights @ right / total), 1.0)
    return float(weights @ losses / total), accuracy, losses


def _least(losses: Sequence[float]) -> int:
    """Return where the least loss is; one that is no number is none."""
    return int(np.argmin(np.nan_to_num(losses, nan=np.inf)))


def _seen(log_p: Floats, codes: Integers) -> Floats:
    """Return the log probability of the class that each row has."""
    return log_p[np.arange(len(codes)), codes]


def _equal_rows(weights: Floats) -> Floats:
    """Return how many rows of equal weight those along the last axis are worth."""
    units = weights / weights.max()  # squares of tiny weights vanish
    return np.asarray(units.sum(axis=-1) ** 2 / (units**2).sum(axis=-1))


class Refinable(Trials, Protocol):
    """Models of one plan of folds whose rows are in memory."""

    def total(self) -> AnyMoments:
        """Return the moments of all the rows."""

    def kept(self, fold: int, smoothing: Smoothing, size: int) -> Integers:
        """Return the best features by the training rows of a fold, shape (size,)."""

    def coarser(self, count: int) -> Refinable:
        """Return the models of fewer folds."""

    def without(self, fold: int) -> Trials:
        """Return the models of the same folds on the rows of all folds but one."""


def refine(
    models: Refinable, X: Matrix, decision: LinearDecision, choice: Choice, evidence: Evidence, prior: Floats
) -> Evidence:
    """Correct single features by conditional maximum entropy with a ridge around calibrated evidence.

    The correction is fitted to out-of-fold evidence and judged on rows that neither has seen. Evidence and
    correction then get a weight each. If the likelihood does not gain more than the number of these
    parameters, the calibrated evidence is returned unchanged.
    """
    if len(models.held) > MOST_FOLDS:
        models = models.coarser(MOST_FOLDS)
    return _Correction.of(models, X, decision, choice, evidence, prior).solved()


@dataclass(frozen=True, eq=False)
class _View:
    """The features that are corrected, their units, and the rows in these."""

    columns: Integers
    unit: Floats
    rows: ScaledRows


@dataclass(frozen=True, eq=False)
class _Correction:
    models: Refinable
    X: Matrix
    decision: LinearDecision
    smoothing: Smoothing
    evidence: Evidence
    #: Of calibrated evidence, the log prior included.
    bias: Floats
    #: Of all rows whose classes can be learnt, by fold.
    held: dict[int, HeldOut]
    telling: Booleans

    @classmethod
    def of(
        cls,
        models: Refinable,
        X: Matrix,
        decision: LinearDecision,
        choice: Choice,
        evidence: Evidence,
        prior: Floats,
    ) -> _Correction:
        with np.errstate(divide="ignore"):
            bias = evidence.bias + np.maximum(np.log(prior), np.log(np.finfo(np.float64).tiny))
        (held,) = models.held_out(evidence.edges, (choice.smoothing,), ALL_ROWS)
        counts = sum(np.bincount(h.codes[h.weights > 0], minlength=len(prior)) for h in held.values())
        telling = np.asarray(counts >= 2)
        held = {fold: part for fold, h in held.items() if len(part := _telling(h, telling))}
        return cls(models, X, decision, choice.smoothing, evidence, bias, held, telling)

    def solved(self) -> Evidence:
        """Calibrated evidence, corrected where that pays."""
        if len(self.held) < 3 or not len(self._view(None).columns):
            return self.evidence
        (share, ridge), corrections, last = self._chosen()
        held = HeldOut.joined([self.held[fold] for fold in corrections])
        tensor = self._mixing(held, corrections)
        mixed = self._mixed(tensor, held)
        before, after = log_posterior(tensor[:, :, 0]), mixed.log_posterior(tensor)
        gain = held.weights @ (_seen(after, held.codes) - _seen(before, held.codes))
        if not mixed.weights[1] > 0 or not gain > len(self.bias) + 1:
            return self.evidence
        view = self._view(None)
        final = self._fitted(HeldOut.joined(list(self.held.values())), None, share, ridge, last)
        of_evidence, of_correction = mixed.weights
        total = of_evidence * self.bias + of_correction * (final[-1] + self._base(share)) + mixed.bias
        folds = np.repeat(list(corrections), [len(self.held[fold]) for fold in corrections])
        given = (tensor, held.codes, held.weights, folds, np.zeros(len(self.bias)))
        log_loss, accuracy, _ = _judged(*given, start=mixed)
        return replace(
            self.evidence,
            weights=of_evidence * self.evidence.weights,
            bias=total - (self.bias - self.evidence.bias),
            columns=view.columns,
            correction=of_correction * (final[:-1] * view.unit[:, None]).T,
            log_loss=log_loss,
            accuracy=accuracy,
            n_rows=float(_equal_rows(held.weights)),
            ridge=ridge,
        )

    def _chosen(self) -> tuple[tuple[float, float], dict[int, Floats], Floats | None]:
        """Return the best share and ridge on as many folds as tell them apart.

        Also what they add to the scores of the held-out rows of some folds, and the last correction.
        """
        first, mixed = self._folds_of(ENOUGH_TO_COMPARE), self._folds_of(ENOUGH_TO_MIX)
        tried: list[dict[int, Floats]] = [{} for _ in TRIED]
        thinned = False
        for fold in first:
            nested, found, before = self._nested(fold), None, None
            if len(nested) > MOST_TO_COMPARE:
                some = np.random.default_rng(0).permutation(len(nested))[:MOST_TO_COMPARE]
                nested, thinned = nested.select(np.sort(some)), True
            for place, (share, ridge) in enumerate(TRIED):
                # Never from the correction of another fold, which has seen the rows that this one holds out.
                found = self._fitted(nested, fold, share, ridge, found if share == before else None)
                tried[place][fold], before = self._added(found, share, fold), share
        held = HeldOut.joined([self.held[fold] for fold in first])
        losses = [self._mixed(self._mixing(held, by_fold), held).loss for by_fold in tried]
        best = _least(losses)
        (share, ridge), chosen = TRIED[best], {} if thinned else tried[best]
        for fold in mixed:
            if fold not in chosen:
                found = self._fitted(self._nested(fold), fold, share, ridge, None)
                chosen[fold] = self._added(found, share, fold)
        return (share, ridge), chosen, found

    def _view(self, fold: int | None) -> _View:
        """Return what is corrected for a fold: the features that its training rows, or all rows, choose."""
        size = len(self.decision.columns)
        if fold is None or size == self.X.shape[1]:
            return self._whole
        columns = self.models.kept(fold, self.smoothing, size)
        # Refined evidence is of one family.
        moments, family = cast(ClassMoments, self.models.total()), self.decision.family
        return self._seen_through(LinearDecision.of(family, moments, self.smoothing, columns))

    @cached_property
    def _whole(self) -> _View:
        return self._seen_through(self.decision)

    def _seen_through(self, decision: LinearDecision) -> _View:
        kept = np.flatnonzero(~decision.apart(is_sparse(self.X)))
        plane, unit = _plane(decision, self.X, kept)
        return _View(decision.columns[kept], unit, ScaledRows.of(plane, unit))

    def _folds_of(self, n_rows: int) -> list[int]:
        """Return the first folds that hold out so many rows together."""
        held = np.cumsum([len(part) for part in self.held.values()])
        return list(self.held)[: int(np.searchsorted(held, n_rows)) + 1]

    def _nested(self, fold: int) -> HeldOut:
        """Evidence of the rows of all other folds, from models that have seen neither them nor this fold."""
        (held,) = self.models.without(fold).held_out(self.evidence.edges, (self.smoothing,), ALL_ROWS)
        return _telling(HeldOut.joined(list(held.values())), self.telling)

    def _scores(self, held: HeldOut) -> Floats:
        return np.asarray(bounded(held.evidence) @ self.evidence.weights) + self.bias

    def _base(self, share: float) -> Floats:
        """Return the offset of a correction besides its share of the evidence."""
        return np.zeros(len(self.bias)) if share else self.bias - self.evidence.bias

    def _fitted(
        self, held: HeldOut, fold: int | None, share: float, ridge: float, start: Floats | None
    ) -> Floats:
        """Return the correction that some rows ask for, of the features of a fold."""
        offset = share * self._scores(held) if share else np.tile(self._base(share), (len(held), 1))
        rows = self._remembered(fold).rows.rows(held.rows)
        if start is not None and len(start) != rows.Z.shape[1]:
            start = None
        return correct(rows, held.codes, held.weights, offset, ridge, start)

    def _added(self, correction: Floats, share: float, fold: int) -> Floats:
        """Return what a correction says of the held-out rows of a fold, shape (n, C)."""
        rows = self._remembered(fold).rows.rows(self.held[fold].rows)
        return rows.scores(correction) + self._base(share)

    def _remembered(self, fold: int | None) -> _View:
        """Return the view of the fold that was looked at last is kept."""
        if self._last.get(fold) is None:
            self._last.clear()
            self._last[fold] = self._view(fold)
        return self._last[fold]

    @cached_property
    def _last(self) -> dict[int | None, _View]:
        return {}

    def _mixing(self, held: HeldOut, corrections: dict[int, Floats]) -> Floats:
        """Return the scores of evidence and those of its correction, shape (n, C, 2)."""
        return np.stack([self._scores(held), np.concatenate(list(corrections.values()))], axis=2)

    def _mixed(self, tensor: Floats, held: HeldOut) -> SharedWeights:
        """Return a weight for the evidence and one for its correction, and a bias for each class."""
        return _weighed(tensor, held.codes, held.weights, np.zeros(tensor.shape[1]))


def _telling(held: HeldOut, telling: Booleans) -> HeldOut:
    """Return the rows that weigh something, of classes that can be learnt."""
    return held.select(telling[held.codes] & (held.weights > 0))


def _plane(decision: LinearDecision, X: Matrix, kept: Integers) -> tuple[Matrix, Floats]:
    """Return the first statistic of some kept features, and the units of their corrections.

    Measurements count in deviations. Counts have one unit, and those that are rarely above 0 count more, as
    in tf-idf: by ``1 - log p``, with p the share of cells that are not 0. Rows have length 1 on average.
    """
    values = X[:, decision.columns[kept]]
    if is_sparse(values):
        plane = decision.family.statistics(values.astype(np.float64))[0].tocsr()
        share = np.bincount(plane.indices, minlength=plane.shape[1]) / max(plane.shape[0], 1)
        square = np.asarray(plane.power(2).mean(axis=0)).ravel()
    else:
        values = np.asarray(values, dtype=np.float64)
        missing = np.isnan(values)
        shifted = np.where(missing, 0.5, values - decision.origin[kept])
        plane = np.where(missing, 0.0, decision.family.statistics(shifted)[0])
        share, square = (plane != 0).mean(axis=0), (plane**2).mean(axis=0)
    if decision.family.translates:
        mean = np.asarray(plane.mean(axis=0)).ravel()
        square = np.maximum(square - mean**2, 1e-12 * square)
        unit = 1.0 / np.sqrt(np.where(square > 0, square, 1.0))
    else:
        unit = 1.0 - np.log(np.where(share > 0, share, 1.0))
    length = np.sqrt(float(unit**2 @ square))
    return plane, unit / (length if length > 0 else 1.0)
