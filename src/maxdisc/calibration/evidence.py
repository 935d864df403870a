"""Evidence that is weighed: a conditional maximum-entropy model over what generative models say out of fold.

Features are not independent, so their evidence adds up to more than it should. How much more differs between
the best features and the rest, and can be seen on held-out rows. Calibrated evidence cuts the ranking into
bands and gives each a weight; :mod:`maxdisc.calibration.refinement` also corrects single features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from maxdisc.calibration.novelty import Novelty
from maxdisc.conditional.shared_weights import SharedWeights, doubt, shared_weights, shared_weights_of_all
from maxdisc.decisions.by_length import LengthDecision, LengthWeights
from maxdisc.decisions.linear import LinearDecision
from maxdisc.decisions.mixed import MixedDecision
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Booleans, Floats, Integers
from maxdisc.rows.sampling import count_rows
from maxdisc.selection.fold_models import Choice, HeldOutTrials, Rule, SelectionPath, enough_folds
from maxdisc.selection.held_out import FARTHEST, HeldOut, bounded, enough_rows

_Weighable = TypeVar("_Weighable", LinearDecision, MixedDecision)

#: A best smoothing at the end of the list is followed further in steps of this, ...
FURTHER = 5.0
#: ... at most this many times.
STEPS_FURTHER = 2
#: With this many rows for each parameter, weights may have seen the rows that they are judged by.
MANY_ROWS = 50
#: Weights of several models are learnt together where that takes at most this many numbers.
FEW_NUMBERS = 2**18
#: More folds than this are put together.
MOST_FOLDS = 10


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
        Added to the weights of the first statistic of these features: a conditional model, and with
        ``lengths`` also the evidence for all other classes together, which counts against a class.
    log_loss, accuracy : float
        On the held-out rows.
    n_rows : float
        How many rows of equal weight these are.
    ridge : float
        Of the correction; 0 where there is none.
    novelty : Novelty, optional
        How well held-out rows fit the classes, before any correction.
    raw_log_loss : float
        On the same rows, if all evidence counted as it is; NaN of models from files.
    by_row : HeldLosses, optional
        The log-loss of each held-out row, before any correction; models from files have none.
    lengths : LengthWeights, optional
        What evidence, correction and classes count for rows with few and many selected features; the rows are
        then scaled over these.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.calibration.evidence import Evidence
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
    raw_log_loss: float = np.nan
    by_row: HeldLosses | None = None
    lengths: LengthWeights | None = None

    def __repr__(self) -> str:
        corrected = "" if self.columns is None else f", {len(self.columns)} features corrected"
        return (
            f"Evidence({len(self.edges)} bands, weights {np.array2string(self.weights, precision=3)}"
            f"{corrected}, held-out log-loss {self.log_loss:.4f}, accuracy {self.accuracy:.4f})"
        )

    def strength(self, size: int) -> Floats:
        """Return the weight of each of the best ``size`` features, shape (size,)."""
        return np.repeat(self.weights, np.diff(self.edges, prepend=0))[:size]

    def applied(self, decision: _Weighable) -> _Weighable | LengthDecision:
        """Return the decision, weighed; its columns may have changed since the evidence was learnt.

        Parameters
        ----------
        decision : LinearDecision or MixedDecision
            Of generative densities, best features first.

        Returns
        -------
        LinearDecision, MixedDecision or LengthDecision
            As linear as before, for rows of one length.
        """
        correction = None
        if self.columns is not None and self.correction is not None:
            order = np.argsort(self.columns)
            place = np.searchsorted(self.columns, decision.columns, sorter=order)
            at = order[np.minimum(place, len(order) - 1)]
            known = self.columns[at] == decision.columns
            correction = np.where(known, self.correction[:, at], 0.0)
        strength = self.strength(len(decision.columns))
        if self.lengths is not None and isinstance(decision, LinearDecision) and correction is not None:
            weights = np.stack([decision.weights[0] * strength, correction])
            return LengthDecision(
                decision.family, decision.columns, weights, decision.log_prior + self.bias, self.lengths
            )
        return decision.weighed(strength, self.bias, correction)

    def reindexed(self, positions: Integers, n_classes: int) -> Evidence:
        """For more classes, of which those here have the positions given; new ones are left alone."""
        bias, correction = np.zeros(n_classes), None
        bias[positions] = self.bias
        if self.correction is not None:
            correction = np.zeros((n_classes, self.correction.shape[1]))
            correction[positions] = self.correction
        novelty = None if self.novelty is None else self.novelty.reindexed(positions, n_classes)
        lengths = None if self.lengths is None else self.lengths.reindexed(positions, n_classes)
        return replace(self, bias=bias, correction=correction, novelty=novelty, lengths=lengths)


def calibrate(
    models: HeldOutTrials,
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
            if least(losses) != len(losses) - 1 or last.amount == 0:
                break
            further = Smoothing(FURTHER * last.amount, last.target)
            (by_fold,) = models.held_out(edges, (further,), most, first)
            problem = _Bands.of(by_fold, edges, prior)
            assert problem is not None
            tried.append((further, by_fold))
            found = problem.all_fitted([problem.sample.evidence], start=found[-1])
            losses.append(found[-1].loss)
    smoothing, by_fold = tried[least(losses)]
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
        raw_log_loss=bands.raw_log_loss(len(weights)),
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
        return _weigh_all(tensors, sample.codes, sample.weights, self.log_prior, sizes, start)

    def path(self, smoothing: Smoothing, fixed: bool) -> tuple[SelectionPath, list[tuple[Floats, Floats]]]:
        """Log-loss and accuracy with the first 1, 2, ... bands, and the weights and biases of each."""
        sizes = range(len(self.edges) if fixed else 1, len(self.edges) + 1)
        correct, losses = np.empty((2, len(sizes), len(self.sample)))
        fits: list[tuple[Floats, Floats]] = []
        every = self.all_fitted([self.sample.evidence], sizes)
        for place, (size, found) in enumerate(zip(sizes, every, strict=True)):
            log_p = found.log_posterior(self.sample.evidence[:, :, :size])
            correct[place] = log_p.argmax(axis=1) == self.sample.codes
            losses[place] = -log_seen(log_p, self.sample.codes)
            fits.append((found.weights, found.bias - self.log_prior))
        edges = self.edges[np.array(sizes) - 1]
        return SelectionPath.by_rows(edges, correct, losses, self.sample.weights, self.folds, smoothing), fits

    def judged(self, weights: Floats, bias: Floats) -> tuple[float, float, HeldLosses]:
        """Log-loss, accuracy, and losses of rows, of weights that have not seen the rows that judge them."""
        sample, start = self.sample, SharedWeights(weights, bias + self.log_prior, np.nan, True)
        tensor = sample.evidence[:, :, : len(weights)]
        given = (tensor, sample.codes, sample.weights, self.folds, self.log_prior, start)
        log_loss, accuracy, losses = held_out_loss(*given)
        order = np.lexsort((sample.rows, self.folds))
        return log_loss, accuracy, HeldLosses(losses[order], sample.weights[order])

    def raw_log_loss(self, size: int) -> float:
        """Return the log-loss of the first bands if each counted as it is."""
        raw = SharedWeights(np.ones(size), self.log_prior, np.nan, True)
        log_p = raw.log_posterior(self.sample.evidence[:, :, :size])
        return float(np.average(-log_seen(log_p, self.sample.codes), weights=self.sample.weights))

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


def weigh(
    tensor: Floats,
    codes: Integers,
    weights: Floats,
    bias_center: Floats,
    start: SharedWeights | None = None,
) -> SharedWeights:
    """Shared weights, in doubt of what so few rows cannot tell."""
    return shared_weights(tensor, codes, weights, bias_center, start=start, doubt=doubt(float(weights.sum())))


def _weigh_all(
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
        out.append(weigh(tensor, codes, weights, bias_center, out[-1] if out else start))
    return out


def held_out_loss(
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
    whole = weigh(tensor, codes, weights, bias_center, start)
    log_p = whole.log_posterior(tensor)
    groups = np.unique(folds, return_inverse=True)[1] % MOST_FOLDS
    if count_rows(weights) > MANY_ROWS * (tensor.shape[1] + tensor.shape[2]):
        groups = np.zeros_like(groups)
    parts = [groups != group for group in range(int(groups.max()) + 1)]
    parts = [p for p in parts if p.any() and not p.all() and np.isin(codes[~p], codes[p]).all()]
    if len(parts) * tensor.size <= FEW_NUMBERS and parts:
        some = weights * np.array(parts)
        doubts = doubt(some.sum(axis=1))
        fits = shared_weights_of_all(tensor[None], codes, some, bias_center, start=whole, doubts=doubts)
    else:
        fits = [weigh(tensor[p], codes[p], weights[p], bias_center, whole) for p in parts]
    for others, found in zip(parts, fits, strict=True):
        log_p[~others] = found.log_posterior(tensor[~others])
    total = weights.sum()
    right = log_p.argmax(axis=1) == codes
    losses = -log_seen(log_p, codes)
    accuracy = min(float(weights @ right / total), 1.0)
    return float(weights @ losses / total), accuracy, losses


def least(losses: Sequence[float]) -> int:
    """Return where the least loss is; one that is no number is none."""
    return int(np.argmin(np.nan_to_num(losses, nan=np.inf)))


def log_seen(log_p: Floats, codes: Integers) -> Floats:
    """Return the log probability of the class that each row has."""
    return log_p[np.arange(len(codes)), codes]


def equal_rows(weights: Floats) -> Floats:
    """Return how many rows of equal weight those along the last axis are worth."""
    units = weights / weights.max()  # squares of tiny weights vanish
    return np.asarray(units.sum(axis=-1) ** 2 / (units**2).sum(axis=-1))
