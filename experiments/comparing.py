"""Statistics of repeated cross-validation: means, spread, and paired differences with a corrected test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from experiments.records import Cells

Floats = npt.NDArray[np.float64]


def corrected_t_test(differences: npt.ArrayLike, held_out_per_training_row: float) -> tuple[float, float]:
    """The corrected resampled t-test of Nadeau and Bengio (2003).

    Parameters
    ----------
    differences : array-like of shape (J,)
        Paired differences, one for each fold of each repeat.
    held_out_per_training_row : float
        Held-out rows over training rows: 1 / (k - 1) for k folds. Training sets overlap, and so differences
        are less independent than they look; this much is added to 1 / J.

    Returns
    -------
    tuple of float
        The statistic, and the two-sided p-value with J - 1 degrees of freedom. Without any spread p is 1 if
        there is no difference, and 0 otherwise.
    """
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or len(d) < 2:
        raise ValueError(f"a paired test needs two differences or more, got shape {d.shape}.")
    mean, variance = d.mean(), d.var(ddof=1)
    if variance <= (1e-12 * np.abs(d).max()) ** 2:
        return (0.0, 1.0) if mean == 0 else (float(np.copysign(np.inf, mean)), 0.0)
    statistic = mean / np.sqrt(variance * (1 / len(d) + held_out_per_training_row))
    return float(statistic), float(2 * student.sf(abs(statistic), len(d) - 1))


def holm(p_values: npt.ArrayLike) -> Floats:
    """Holm's step-down adjustment: p-values that may be compared with one level together."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


@dataclass(frozen=True)
class Score:
    """A mean over folds and repeats, and the deviation of the repeats' means."""

    mean: float
    spread: float
    n_repeats: int


def by_repeat(cells: Cells, row: str, method: str, value: str = "accuracy") -> dict[int, list[float]]:
    """Values of a method on a row, by seed, in the order of the folds."""
    found: dict[int, list[float]] = {}
    for key in sorted(cells):
        if key.row == row and key.method == method and value in cells[key]:
            found.setdefault(key.seed, []).append(cells[key][value])
    return found


def score(cells: Cells, row: str, method: str, value: str = "accuracy") -> Score | None:
    """Mean and spread, or None where nothing was measured."""
    means = [np.mean(values) for values in by_repeat(cells, row, method, value).values()]
    if not means:
        return None
    spread = float(np.std(means, ddof=1)) if len(means) > 1 else float("nan")
    return Score(float(np.mean(means)), spread, len(means))


def paired(cells: Cells, row: str, first: str, second: str, value: str = "accuracy") -> Floats:
    """Differences of two methods on the folds that both have."""
    a, b = (
        {(k.seed, k.fold): cell[value] for k, cell in cells.items() if (k.row, k.method) == (row, method)}
        for method in (first, second)
    )
    return np.array([a[fold] - b[fold] for fold in sorted(a.keys() & b.keys())])


@dataclass(frozen=True)
class Comparison:
    """One method beside another on a row; p is adjusted over all rows that are compared together."""

    row: str
    rival: str
    difference: float
    p: float


def compared(
    cells: Cells, rows: Sequence[str], ours: str, rivals: Sequence[str], n_folds: int
) -> list[Comparison]:
    """Our method beside the best rival of each row, with Holm's adjustment over the rows."""
    found: list[tuple[str, str, float, float]] = []
    for row in rows:
        scores = {rival: s.mean for rival in rivals if (s := score(cells, row, rival)) is not None}
        if not scores or score(cells, row, ours) is None:
            continue
        best = max(scores, key=lambda rival: scores[rival])
        differences = paired(cells, row, ours, best)
        if len(differences) >= 2:
            p = corrected_t_test(differences, 1 / (n_folds - 1))[1]
            found.append((row, best, float(differences.mean()), p))
    adjusted = holm([p for *_, p in found]).tolist()
    return [Comparison(row, rival, d, p) for (row, rival, d, _), p in zip(found, adjusted, strict=True)]


def seeds_of(cells: Cells) -> list[int]:
    return sorted({key.seed for key in cells})


def methods_of(cells: Cells, among: dict[str, Any]) -> list[str]:
    """The methods that were run, in the order of a registry."""
    run = {key.method for key in cells}
    return [name for name in among if name in run]
