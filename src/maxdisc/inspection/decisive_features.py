"""The features that decided, for many rows at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from maxdisc.decisions.by_length import LengthDecision
from maxdisc.decisions.joint import JointDecision
from maxdisc.decisions.joint_average import AveragedDecision
from maxdisc.decisions.linear import LinearDecision
from maxdisc.decisions.mixed import MixedDecision
from maxdisc.numerics.block_matrix import Table
from maxdisc.numerics.matrices import Floats, Integers, Matrix, blocks, canonical, is_sparse

Decision: TypeAlias = LinearDecision | MixedDecision | JointDecision | AveragedDecision | LengthDecision
#: Decisions whose scores are products of planes of cells with weights.
_OfCells: TypeAlias = LinearDecision | LengthDecision


class Reason(NamedTuple):
    """A feature, its log-odds for the label against the runner-up, and whether the row has any of it."""

    feature: str
    log_odds: float
    present: bool


def loudest(
    decision: Decision,
    names: npt.NDArray[Any],
    X: Matrix,
    first: Integers,
    second: Integers,
    n: int,
) -> list[list[Reason]]:
    """Return, for each row, the ``n`` features with the largest evidence for one class against another.

    Rows with the same two classes are handled together, so no other class is computed; of sparse rows only
    stored cells are read, because an absent word contributes the same to all.
    """
    out: list[list[Reason]] = [[] for _ in range(len(first))]
    if not isinstance(X, Table):
        X = canonical(X) if is_sparse(X) else np.asarray(X, dtype=np.float64)
    by_cells = is_sparse(X) and (
        isinstance(decision, LengthDecision)
        or (isinstance(decision, LinearDecision) and not decision.apart(sparse=True).any())
    )
    planes = _planes(cast(_OfCells, decision), X) if by_cells else ()
    pairs, group = np.unique(np.stack([first, second]), axis=1, return_inverse=True)
    for g, pair in enumerate(pairs.T):
        two = decision.between(pair)
        members = np.flatnonzero(group.ravel() == g)
        some = [plane[members] for plane in planes]
        parts = _from_cells(cast(_OfCells, two), some, n) if by_cells else _from_all(two, X[members], n)
        for row, part in zip(members, parts, strict=True):
            out[row] = [
                Reason(str(names[k]), float(odds), bool(there))
                for k, odds, there in zip(part.features, part.odds, part.present, strict=True)
            ]
    return out


@dataclass(frozen=True, eq=False)
class _Loudest:
    """Of one row: positions of features, their log-odds, and which of them the row has."""

    features: Integers
    odds: Floats
    present: npt.NDArray[np.bool_]


def _planes(decision: _OfCells, X: Matrix) -> tuple[Matrix, ...]:
    if isinstance(decision, LengthDecision):
        return decision.planes(X)
    return decision.family.statistics(canonical(X[:, decision.columns]))


def _from_cells(two: _OfCells, planes: list[Matrix], n: int) -> Iterator[_Loudest]:
    absent = two.baseline[1] - two.baseline[0]
    weights = two.weights[:, 0] - two.weights[:, 1]
    cells = canonical(sum(plane.multiply(w[None, :]) for w, plane in zip(weights, planes, strict=True)))
    # These are enough, even for a row that has all the features whose absence has most evidence.
    enough = min(n + int(np.diff(cells.indptr).max()), len(absent))
    magnitude = np.abs(absent)
    least = np.partition(magnitude, len(absent) - enough)[len(absent) - enough]
    candidates = np.flatnonzero(magnitude >= least)
    candidates = candidates[np.argsort(-magnitude[candidates], kind="stable")]
    for begin, end in pairwise(cells.indptr):
        at = cells.indices[begin:end]
        silent = np.setdiff1d(candidates[: n + len(at)], at)
        features = np.r_[at, silent]
        odds = np.r_[cells.data[begin:end] + absent[at], absent[silent]]
        best = np.lexsort([features, -np.abs(odds)])[:n]
        yield _Loudest(features[best], odds[best], best < len(at))


def _from_all(two: Decision, X: Matrix | Table, n: int) -> Iterator[_Loudest]:
    for block in blocks(X.shape[0], 4 * len(two.columns)):
        rows = X[block]
        parts = two.contributions(rows)
        odds = parts[:, 0] - parts[:, 1]
        best = np.argsort(-np.abs(odds), axis=1, kind="stable")[:, :n]
        for row, (at, each) in enumerate(zip(best, odds, strict=True)):
            if isinstance(rows, Table):  # only of words does it matter whether they are there
                yield _Loudest(at, each[at], np.ones(len(at), dtype=np.bool_))
                continue
            cells = rows[[row]][:, two.columns[at]]
            values = cells.toarray()[0] if is_sparse(cells) else cells[0]
            yield _Loudest(at, each[at], values != 0)
