"""Conditional maximum entropy with a ridge, by dual coordinate ascent over rows, all classes at once.

The primal is ``sum_i w_i (logsumexp_c(s_ic) - s_iy) + ridge / 2 |W|^2`` with ``s = offset + bias + Z W``;
biases cost nothing. Each row has a dual, a point of the simplex of classes, and ``W = Z' (w (Y - duals)) /
ridge``. A sweep moves every dual towards the row's current probabilities, as far as the dual objective
gains most.

Two things make few sweeps enough. Rows are centred: where biases are free this changes nothing, but it
decouples them from the weights. And the path of ridges is warm: the duals of one ridge begin the next.

Where biases are the best for the weights, the probabilities P of the rows are feasible duals, and the
duality gap is ``ridge / 2 |W - Z' (w (Y - P)) / ridge|^2``. It is computed in double precision, and bounds
how far the objective is from its minimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import minimize

from maxdisc.conditional.model import log_posterior
from maxdisc.numerics.matrices import Floats, Integers, Matrix, is_sparse
from maxdisc.numerics.switches import is_compiled

#: The gap is computed after these sweeps.
CHECKED = (3, 6, 9, 13, 18, 25, 35, 50, 70, 100, 150, 220, 320)
#: Rows whose probabilities differ from their duals by less than this share of the tolerance wait.
LEAST_CHANGE = 0.01
#: Biases are found to this share of the tolerance, in rows; the number of steps is bounded.
BIAS_TOLERANCE = 1e-3
BIAS_STEPS = 30
#: With more classes than this, their curvature is taken class by class.
MANY_CLASSES = 256
#: Rows that a class without rows is taken to have, so that its bias is finite.
FEW_ROWS = 0.5
#: The range of ridges that single precision can work with, in units of the heaviest row.
RIDGE_RANGE = (1e-7, 1e12)
#: Problems of fewer products of stored cells and classes are solved in double precision, not compiled.
MANY_PRODUCTS = 2**14

_Single = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """A conditional model with a ridge: weights (K, C), biases (C,), and how far it is from the optimum."""

    weights: Floats
    bias: Floats
    ridge: float
    #: The primal objective, and by how much it may be above the minimum.
    objective: float
    gap: float
    n_sweeps: int
    converged: bool
    #: Of the rows, shape (n, C): where another fit to the same rows may begin; None where none were needed.
    duals: _Single | None = None

    def scores(self, Z: Matrix) -> Floats:
        """Return the scores of rows, offsets aside, shape (n, C)."""
        if self.duals is None:
            return np.asarray(Z @ self.weights) + self.bias
        return score_sparse(as_rows(Z), self.weights) + self.bias


def fit_ridges(
    Z: Matrix,
    codes: Integers,
    row_weight: Floats,
    ridges: Sequence[float],
    n_classes: int,
    offset: Floats | None = None,
    tol: float = 1e-3,
    start: RidgeFit | None = None,
    max_sweeps: int | None = None,
) -> Iterator[RidgeFit]:
    """Yield the fit at each ridge: by coordinate ascent, or small problems by L-BFGS in double precision.

    ``start`` is a fit to the same rows, of the same columns or of more or fewer of them.
    """
    keep = np.flatnonzero(row_weight > 0)
    if len(keep) < len(row_weight):
        Z, codes, row_weight = Z[keep], codes[keep], row_weight[keep]
        offset = None if offset is None else offset[keep]
    # In units of the heaviest row, which single precision can hold.
    unit = row_weight.max()
    with np.errstate(over="ignore"):
        scaled = np.clip(np.divide(ridges, unit), *RIDGE_RANGE).tolist()
    stored = Z.nnz if is_sparse(Z) else Z.size
    if is_compiled(stored * n_classes, MANY_PRODUCTS):
        found = ascend(Z, codes, row_weight / unit, scaled, n_classes, offset, tol, start, max_sweeps)
    else:
        found = _descend(Z, codes, row_weight / unit, scaled, n_classes, offset, start)
    for fit, ridge in zip(found, ridges, strict=True):
        yield replace(fit, ridge=ridge, objective=unit * fit.objective, gap=unit * fit.gap)


def _descend(
    Z: Matrix,
    codes: Integers,
    row_weight: Floats,
    ridges: Sequence[float],
    n_classes: int,
    offset: Floats | None,
    start: RidgeFit | None,
) -> Iterator[RidgeFit]:
    """Minimise the primal by scipy's L-BFGS."""
    rows = Z.astype(np.float64)
    truth, base = (np.arange(len(codes)), codes), 0.0 if offset is None else offset
    shape = (rows.shape[1] + 1, n_classes)
    mass = np.bincount(codes, row_weight, n_classes)
    present = mass > 0
    point = np.zeros(shape)
    if start is not None:
        common = min(rows.shape[1], len(start.weights))
        point[:common], point[-1] = start.weights[:common], start.bias
    else:
        point[-1] = np.log((mass + FEW_ROWS) / (mass + FEW_ROWS).sum())

    def evaluate(flat: Floats, ridge: float) -> tuple[float, Floats]:
        found = flat.reshape(shape)
        log_p = log_posterior(base + rows @ found[:-1] + found[-1])
        surplus = np.exp(log_p)
        surplus[truth] -= 1.0
        surplus *= row_weight[:, None]
        value = 0.5 * ridge * float((found[:-1] ** 2).sum()) - float(row_weight @ log_p[truth])
        slope = np.vstack(
            [rows.T @ surplus + ridge * found[:-1], np.where(present, surplus.sum(axis=0), 0.0)]
        )
        return value, slope.ravel()

    for ridge in ridges:
        options: Any = {
            "maxiter": 2000,
            "maxfun": 4000,
            "maxcor": 20,
            "ftol": 1e-16,
            "gtol": 1e-9 * row_weight.sum(),
        }
        found = minimize(evaluate, point.ravel(), (ridge,), "L-BFGS-B", jac=True, options=options)
        point = found.x.reshape(shape)
        value, slope = evaluate(found.x, ridge)
        gap = float((slope.reshape(shape)[:-1] ** 2).sum()) / (2 * ridge)
        yield RidgeFit(
            point[:-1], point[-1], float(ridge), value, gap, int(found.nit), gap <= 1e-6 * max(value, 1e-6)
        )


def as_rows(Z: Matrix) -> Matrix:
    """Return rows as the kernels take them: CSR, in single precision."""
    if is_sparse(Z):
        return sp.csr_array(Z).astype(np.float32, copy=False)
    dense = np.ascontiguousarray(Z, dtype=np.float32)
    n_rows, n_columns = dense.shape
    indices = np.tile(np.arange(n_columns, dtype=np.int32), n_rows)
    return sp.csr_array((dense.ravel(), indices, np.arange(n_rows + 1) * n_columns), shape=dense.shape)


def score_sparse(rows: Matrix, weights: Floats) -> Floats:
    """Return the product of sparse rows (n, K) and weights (K, C)."""
    from maxdisc.conditional.compiled_ascent import score_rows

    out = np.zeros((rows.shape[0], weights.shape[1]))
    score_rows(rows.indptr, rows.indices, rows.data, weights, out)
    return out


def ascend(
    Z: Matrix,
    codes: Integers,
    row_weight: Floats,
    ridges: Sequence[float],
    n_classes: int,
    offset: Floats | None = None,
    tol: float = 1e-3,
    start: RidgeFit | None = None,
    max_sweeps: int | None = None,
) -> Iterator[RidgeFit]:
    """Yield the fit at each ridge, each beginning where the last one ended.

    ``tol`` is the largest gap, as a share of the objective; a fit that does not reach it says so. Results do
    not depend on the number of threads: a path is one thread's.
    """
    ascent = _Ascent.of(as_rows(Z), codes, row_weight, n_classes, offset, start)
    for ridge in ridges:
        yield ascent.solve(float(ridge), tol, max_sweeps or CHECKED[-1])


class _Ascent:
    """The state of a path: duals and biases, and the weights that follow from them."""

    def __init__(
        self, rows: Matrix, codes: Integers, row_weight: Floats, offset: Floats, duals: _Single, bias: Floats
    ) -> None:
        self.rows, self.codes, self.row_weight, self.offset = rows, codes, row_weight, offset
        self.duals, self.bias = duals, bias
        total = row_weight.sum()
        self.center = np.asarray(row_weight @ rows, dtype=np.float64) / total
        overlap = rows @ self.center
        square = np.add.reduceat(np.append(rows.data.astype(np.float64) ** 2, 0.0), rows.indptr[:-1])
        square[np.diff(rows.indptr) == 0] = 0.0
        self.center_square = float(self.center @ self.center)
        # Rounding must not make the length of a centred row negative.
        self.square = np.maximum(square - 2 * overlap + self.center_square, 0.0).astype(np.float32)
        self.overlap = overlap.astype(np.float32)
        self.single_weight = row_weight.astype(np.float32)
        self.single_offset = offset.astype(np.float32)
        self.rng = np.random.default_rng(0)
        self.mass = np.bincount(codes, row_weight, offset.shape[1])
        self.present = self.mass > 0

    @classmethod
    def of(
        cls,
        rows: Matrix,
        codes: Integers,
        row_weight: Floats,
        n_classes: int,
        offset: Floats | None,
        start: RidgeFit | None,
    ) -> _Ascent:
        if offset is None:
            offset = np.zeros((1, n_classes))
        if start is not None and start.duals is not None:
            return cls(rows, codes, row_weight, offset, start.duals.copy(), start.bias)
        duals = np.zeros((len(codes), n_classes), dtype=np.float32)
        duals[np.arange(len(codes)), codes] = 1.0
        mass = np.bincount(codes, row_weight, n_classes)
        bias = np.log((mass + FEW_ROWS) / (mass + FEW_ROWS).sum()) - offset.mean(axis=0)
        return cls(rows, codes, row_weight, offset, duals, bias)

    def solve(self, ridge: float, tol: float, max_sweeps: int) -> RidgeFit:
        """Sweep until the gap is small."""
        from maxdisc.conditional.compiled_ascent import sweep_rows

        rows, n_classes = self.rows, self.offset.shape[1]
        checked = [0, *(n for n in CHECKED if n < max_sweeps), max_sweeps]
        # The duals give the bias of centred rows its place.
        weights, residual = self._weights(ridge)
        center_bias = self.bias + self.center @ weights
        for before, after in pairwise(checked):
            raw = (weights + np.outer(self.center, residual) / ridge).astype(np.float32)
            state = (residual.astype(np.float32), (self.center @ raw).astype(np.float32))
            bias = center_bias.astype(np.float32)
            for _ in range(before, after):
                sweep_rows(
                    rows.indptr,
                    rows.indices,
                    rows.data,
                    self.rng.permutation(len(self.codes)),
                    self.single_weight,
                    self.single_offset,
                    bias,
                    self.square,
                    self.overlap,
                    np.float32(self.center_square),
                    np.float32(ridge),
                    raw,
                    *state,
                    self.duals,
                    np.float32(LEAST_CHANGE * tol),
                )
                bend = self.single_weight @ (self.duals * (1 - self.duals))
                move = state[0] / np.maximum(bend, 1e-3) * (n_classes - 1) / n_classes
                bias += np.where(self.present, np.clip(move, -2.0, 2.0), 0.0).astype(np.float32)
            # From the duals again: single precision drifts.
            weights, residual = self._weights(ridge)
            fit = self._judge(weights, bias - self.center @ weights, ridge, after, tol)
            center_bias = fit.bias + self.center @ weights
            if fit.converged:
                break
        self.bias = fit.bias
        return fit

    def _weights(self, ridge: float) -> tuple[Floats, Floats]:
        """The weights of centred rows, and what the classes have beyond the duals."""
        surplus = -self.duals.astype(np.float64)
        surplus[np.arange(len(self.codes)), self.codes] += 1.0
        surplus *= self.row_weight[:, None]
        residual = surplus.sum(axis=0)
        return (self._columns(surplus) - np.outer(self.center, residual)) / ridge, residual

    def _columns(self, values: Floats) -> Floats:
        from maxdisc.conditional.compiled_ascent import sum_columns

        out = np.zeros((self.rows.shape[1], values.shape[1]))
        sum_columns(self.rows.indptr, self.rows.indices, self.rows.data, values, out)
        return out

    def _judge(self, weights: Floats, bias: Floats, ridge: float, n_sweeps: int, tol: float) -> RidgeFit:
        """Find the best biases for these weights, and the gap."""
        truth = np.arange(len(self.codes)), self.codes
        scores = self.offset + score_sparse(self.rows, weights)
        log_p, bias = self._match_classes(scores, bias, BIAS_TOLERANCE * tol)
        objective = 0.5 * ridge * float((weights**2).sum()) - float(self.row_weight @ log_p[truth])
        surplus = -np.exp(log_p)
        surplus[truth] += 1.0
        surplus *= self.row_weight[:, None]
        apart = weights - (self._columns(surplus) - np.outer(self.center, surplus.sum(axis=0))) / ridge
        gap = 0.5 * ridge * float((apart**2).sum())
        return RidgeFit(weights, bias, ridge, objective, gap, n_sweeps, gap <= tol * objective, self.duals)

    def _match_classes(self, scores: Floats, bias: Floats, tol: float) -> tuple[Floats, Floats]:
        """Log probabilities whose sums over rows are those of the classes, and the biases that give them."""
        log_p = log_posterior(scores + bias)
        for _ in range(BIAS_STEPS):
            probability = np.exp(log_p)
            residual = np.where(self.present, self.mass - self.row_weight @ probability, 0.0)
            if np.abs(residual).sum() <= tol * self.mass.sum():
                break
            bias = bias + self._bias_step(probability, residual)
            log_p = log_posterior(scores + bias)
        return log_p, bias

    def _bias_step(self, probability: Floats, residual: Floats) -> Floats:
        """Newton's step for the biases, of bounded length."""
        mass = probability * self.row_weight[:, None]
        if len(residual) > MANY_CLASSES:
            bend = np.maximum((mass * (1 - probability)).sum(axis=0), 1e-12)
            return np.asarray(np.clip(residual / bend, -1.0, 1.0))
        bend = np.diag(mass.sum(axis=0)) - probability.T @ mass
        # All biases together may move freely.
        bend += np.full_like(bend, np.trace(bend) / len(bend) ** 2) + 1e-12 * np.eye(len(bend))
        return np.asarray(np.clip(np.linalg.solve(bend, residual), -2.0, 2.0)) * self.present
