"""Selection of the family of a column, by held-out likelihood of the classes.

Likelihoods of densities and of probabilities are not comparable; held-out likelihoods of the classes are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxdisc.decisions.linear import LinearDecision
from maxdisc.densities.class_densities import class_prior
from maxdisc.families import FAMILIES, Bernoulli, Categorical, Family
from maxdisc.families.blocks import Block
from maxdisc.moments.class_moments import ClassMoments, added
from maxdisc.moments.counting import class_moments
from maxdisc.numerics.matrices import Booleans, Floats, Integers, blocks
from maxdisc.rows.frames import BOOLEAN, EMPTY, NUMBER, Cells, Levels
from maxdisc.rows.row_sources import class_starts
from maxdisc.rows.sampling import count_rows

#: With fewer rows (by weight), numbers are Gaussian, as in arrays.
FEWEST_ROWS = 30
#: Maximum number of rows for the selection, ...
MOST_ROWS = 2000
#: ... and its number of folds.
N_FOLDS = 3
#: With at least this share of zeros, a hurdle density is a candidate for non-negative numbers.
MANY_ZEROS = 0.05
#: Whole numbers with at most this many values may be codes, that is, categories, ...
MOST_CODES = 24
#: ... if there are at least this many rows per value on average.
ROWS_PER_CODE = 10
#: Numbers whose range is at most this share of the largest have an offset, which only a Gaussian supports.
NARROW = 1e-5


@dataclass(frozen=True, eq=False)
class Values:
    """Statistics that decide which families columns can have; all of shape (D,).

    ``zeros`` and ``count`` are numbers of cells: those of a row of weight 2 are there twice, those of a row
    that weighs less than 1 once.
    """

    low: Floats
    high: Floats
    whole: Booleans
    zeros: Floats
    count: Floats

    @classmethod
    def of(cls, numbers: Floats, weights: Floats) -> Values:
        """Build from numbers (N, D), where NaN is a missing cell, and the weights of rows (N,)."""
        there, times = ~np.isnan(numbers), np.maximum(weights, 1.0)
        low = np.where(there, numbers, np.inf).min(axis=0, initial=np.inf)
        high = np.where(there, numbers, -np.inf).max(axis=0, initial=-np.inf)
        with np.errstate(invalid="ignore"):
            whole = (~there | (numbers == np.rint(numbers))).all(axis=0)
        return cls(low, high, whole, times @ (numbers == 0), times @ there)

    def allowed(self) -> dict[str, Booleans]:
        """Return for each candidate family the columns that allow it, most specific families first."""
        found = (self.count > 0) & np.isfinite(self.low) & np.isfinite(self.high)
        with np.errstate(invalid="ignore", over="ignore"):
            n_codes = self.high - self.low + 1
            is_narrow = (self.low > 0) & (n_codes > 1) & (self.high - self.low <= NARROW * self.high)
        counts = found & self.whole & (self.low >= 0) & ~is_narrow
        few = self.whole & (n_codes <= MOST_CODES) & (self.count >= ROWS_PER_CODE * n_codes)
        positive = found & ~self.whole & (self.low > 0) & ~is_narrow
        return {
            "poisson": counts,
            "geometric": counts,
            "beta": positive & (self.high < 1),
            "gamma": positive,
            "exponential": positive,
            "hurdle": found & ~self.whole & (self.low >= 0) & (self.zeros >= MANY_ZEROS * self.count),
            "gaussian": np.ones(len(self.low), dtype=np.bool_),
            "categorical": found & few,
        }


def families_of_types(cells: Cells) -> list[tuple[Family, Integers]]:
    """Return families by the types of columns: Bernoulli for truth values, Gaussian for numbers."""
    kinds = np.where(cells.kinds == EMPTY, NUMBER, cells.kinds)
    pairs = ((Bernoulli(), kinds == BOOLEAN), (FAMILIES["gaussian"], kinds == NUMBER))
    return [(family, np.flatnonzero(some)) for family, some in pairs if some.any()]


def chosen_families(
    numbers: Floats,
    columns: Integers,
    codes: Integers,
    n_classes: int,
    weights: Floats,
    values: Values | None = None,
) -> list[tuple[Family, Integers]]:
    """Return, for some columns, the families that predict held-out classes best, each with its columns.

    ``Categorical`` may be among them, for integers that are codes.
    """
    if count_rows(weights) < FEWEST_ROWS:
        return [(FAMILIES["gaussian"], columns)] if len(columns) else []
    allowed = (Values.of(numbers[:, columns], weights) if values is None else values).allowed()
    names = list(allowed)
    rows = _sample(codes, MOST_ROWS)
    tried, codes, weights = numbers[np.ix_(rows, columns)], codes[rows], weights[rows]
    # The rows of each class are assigned in turn.
    folds = np.empty(len(codes), dtype=np.intp)
    folds[_by_class(codes)] = np.arange(len(codes)) % N_FOLDS
    gains = np.full((len(names), len(columns)), -np.inf)
    for place, name in enumerate(names):
        for some in blocks(len(columns), max(1, len(rows) * n_classes)):
            at = some.start + np.flatnonzero(allowed[name][some])
            if len(at):
                family = Categorical() if name == "categorical" else FAMILIES[name]
                gains[place, at] = _told(family, tried[:, at], codes, n_classes, weights, folds)
    # Gains that differ by rounding alone are equal: then the earlier is taken.
    best = np.argmax(gains >= gains.max(axis=0) - 1e-9 * len(rows), axis=0)
    taken = [(name, columns[best == place]) for place, name in enumerate(names)]
    return [(Categorical() if name == "categorical" else FAMILIES[name], at) for name, at in taken if len(at)]


def _by_class(codes: Integers) -> Integers:
    """Rows class by class, however labels sort."""
    return np.argsort(class_starts(codes), kind="stable")


def _sample(codes: Integers, most: int) -> Integers:
    """Return at most this many rows, evenly from every class."""
    order = _by_class(codes)
    if len(order) > most:
        order = order[np.linspace(0, len(order) - 1, most).astype(np.intp)]
    return np.sort(order)


@np.errstate(all="ignore")  # a family under which numbers overflow is not taken
def _told(
    family: Family, values: Floats, codes: Integers, n_classes: int, weights: Floats, folds: Integers
) -> Floats:
    """Return the log probability of the held-out rows' classes by each column alone, shape (D,)."""
    block = Block(family, np.arange(values.shape[1]))
    X = values
    if block.has_levels:
        written = values.astype(object)
        written[np.isnan(values)] = None
        levels = Levels.of(written, np.arange(values.shape[1]))
        X, block = levels.indicators(written, np.arange(values.shape[1]))[0], Block(family, levels.columns)
    statistics, smoothing = family.statistics, family.usual_smoothing

    def moments_of(some: Booleans) -> ClassMoments:
        given = (statistics, X[some], codes[some], n_classes, weights[some], family.translates)
        return block.settled(class_moments(*given))

    parts = [moments_of(folds == f) for f in range(N_FOLDS)]
    out = np.zeros(values.shape[1])
    for fold in range(N_FOLDS):
        training = added(part for f, part in enumerate(parts) if f != fold)
        decision = LinearDecision.of(family, training, smoothing, np.arange(X.shape[1]))
        held = folds == fold
        if block.has_levels:
            evidence = np.zeros((int(held.sum()), n_classes, values.shape[1]))
            at = X[held].tocoo()
            evidence[at.row, :, block.columns[at.col]] = decision.weights[0][:, at.col].T
        else:
            evidence = decision.contributions(X[held])
        with np.errstate(divide="ignore"):
            scores = evidence + np.log(class_prior(training))[:, None]
        highest = scores.max(axis=1, keepdims=True)
        log_p = scores - highest - np.log(np.exp(scores - highest).sum(axis=1, keepdims=True))
        own = np.take_along_axis(log_p, codes[held][:, None, None], axis=1)[:, 0]
        # A class without training rows carries no information on columns.
        out += weights[held] @ np.where(np.isfinite(own), own, 0.0)
    return np.where(np.isfinite(out), out, -np.inf)
