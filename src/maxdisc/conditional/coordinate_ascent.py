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
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import minimize

from maxdisc.conditional.model import log_posterior
from maxdisc.numerics.matrices import Floats, Integers, Matrix, blocks, canonical, is_sparse
from maxdisc.numerics.switches import is_compiled

#: Most sweeps.
MOST_SWEEPS = 320
#: The gap is computed when a sweep's own estimate is small, but after at most this many sweeps without.
MOST_UNCHECKED = 10
#: Rows wait that together would add no more than this share of the tolerance to the gap.
WAIT = 0.1
#: Smaller tolerances than this need double precision.
SINGLE_TOLERANCE = 1e-6
#: Biases are found to this share of the tolerance, in rows; the number of steps is bounded.
BIAS_TOLERANCE = 1e-3
BIAS_STEPS = 30
#: The sums of doubles are not more precise than this.
ROUNDING = 1e-13
#: With more classes than this, their curvature is taken class by class.
MANY_CLASSES = 256
#: So many probabilities are worked on at a time, in double precision.
NUMBERS_AT_A_TIME = 2**17
#: Rows that a class without rows is taken to have, so that its bias is finite.
FEW_ROWS = 0.5
#: The range of ridges that single precision can work with, in units of the heaviest row and largest value.
RIDGE_RANGE = (1e-7, 1e12)
#: Smallest divisor.
TINY = 1e-300
#: Problems of fewer products of stored cells and classes are solved in double precision, not compiled.
MANY_PRODUCTS = 2**14

_Duals = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """A conditional model with a ridge: weights (K, C), biases (C,), and how far it is from the optimum."""

    weights: Floats
    bias: Floats
    ridge: float
    #: The primal objective, and by how much it may be above the minimum.
    objective: float = np.inf
    gap: float = np.inf
    n_sweeps: int = 0
    converged: bool = False
    #: Of the rows, shape (n, C): where another fit to the same rows may begin; None where none were needed.
    duals: _Duals | None = None

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
    max_sweeps: int = MOST_SWEEPS,
    by_size: bool = True,
) -> Iterator[RidgeFit]:
    """Yield the fit at each ridge: by coordinate ascent, or small problems by L-BFGS in double precision.

    Coordinate ascent takes problems of any size with ``by_size=False``. ``start`` is a fit to the same rows,
    of the same columns or of more or fewer of them.
    """
    keep = np.flatnonzero(row_weight > 0)
    if len(keep) < len(row_weight):
        Z, codes, row_weight = Z[keep], codes[keep], row_weight[keep]
        offset = None if offset is None else offset[keep]
    # In units of the heaviest row, which single precision can hold.
    unit = row_weight.max()
    with np.errstate(over="ignore"):
        scaled = np.divide(ridges, unit)
    stored = Z.nnz if is_sparse(Z) else Z.size
    if not by_size or is_compiled(stored * n_classes, MANY_PRODUCTS):
        found = ascend(Z, codes, row_weight / unit, scaled, n_classes, offset, tol, start, max_sweeps)
    else:
        found = _descend(Z, codes, row_weight / unit, np.clip(scaled, *RIDGE_RANGE), n_classes, offset, start)
    for fit, ridge in zip(found, ridges, strict=True):
        yield replace(fit, ridge=ridge, objective=unit * fit.objective, gap=unit * fit.gap)


def _descend(
    Z: Matrix,
    codes: Integers,
    row_weight: Floats,
    ridges: Floats,
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


def as_rows(Z: Matrix, precision: type[np.floating[Any]] = np.float32, unit: float = 1.0) -> Matrix:
    """Return rows, divided by ``unit``, as the kernels take them: CSR, without duplicates, in any order."""
    if is_sparse(Z):
        Z = _with_short_indices(sp.csr_array(Z))
        # Sorting takes as long as some sweeps.
        if not Z.has_canonical_format and _has_repeats(Z):
            Z = canonical(Z)
        values, indices, indptr = Z.data, Z.indices, Z.indptr
    else:
        n_rows, n_columns = Z.shape
        values, indptr = Z.ravel(), np.arange(n_rows + 1) * n_columns
        indices = np.tile(np.arange(n_columns), n_rows)
    data = np.empty(values.shape, dtype=precision)
    np.multiply(values, 1.0 / unit, out=data, casting="unsafe")
    return _with_short_indices(sp.csr_array((data, indices, indptr), shape=Z.shape))


def _with_short_indices(Z: Matrix) -> Matrix:
    """Return sparse rows with indices of 32 bits, if these suffice: kernels are compiled for each kind."""
    if Z.indices.dtype == np.int32 or max(Z.nnz, *Z.shape) > np.iinfo(np.int32).max:
        return Z
    parts = (Z.data, Z.indices.astype(np.int32), Z.indptr.astype(np.int32))
    return sp.csr_array(parts, shape=Z.shape)


def _has_repeats(Z: Matrix) -> bool:
    from maxdisc.conditional.compiled_ascent import has_repeats

    return bool(has_repeats(Z.indptr, Z.indices, np.full(Z.shape[1], -1, dtype=np.int64)))


def score_sparse(rows: Matrix, weights: Floats) -> Floats:
    """Return the product of sparse rows (n, K) and weights (K, C)."""
    from maxdisc.conditional.compiled_ascent import score_rows

    out = np.zeros((rows.shape[0], weights.shape[1]))
    score_rows(rows.indptr, rows.indices, rows.data, weights, out)
    return out


def relative_ridge(Z: Matrix, row_weight: Floats, ridge: float) -> float:
    """Return a ridge in units of the heaviest row and the largest value, as `RIDGE_RANGE` counts it."""
    unit = unit_of(Z)
    with np.errstate(over="ignore"):
        return float(ridge / row_weight.max() / unit / unit)


def unit_of(Z: Matrix) -> float:
    """Return the power of 2 just above the largest value: dividing by it loses no digits."""
    values = Z.data if is_sparse(Z) else Z
    largest = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest > 0 else 1.0


def ascend(
    Z: Matrix,
    codes: Integers,
    row_weight: Floats,
    ridges: Sequence[float],
    n_classes: int,
    offset: Floats | None = None,
    tol: float = 1e-3,
    start: RidgeFit | None = None,
    max_sweeps: int = MOST_SWEEPS,
) -> Iterator[RidgeFit]:
    """Yield the fit at each ridge, each beginning where the last one ended.

    ``tol`` is the largest gap, as a share of the objective; a fit that does not reach it says so. Results do
    not depend on the number of threads: a path is one thread's.
    """
    precision: type[np.floating[Any]] = np.float32 if tol >= SINGLE_TOLERANCE else np.float64
    unit = unit_of(Z)
    ascent = _Ascent.of(as_rows(Z, precision, unit), codes, row_weight, n_classes, offset, start, unit)
    for ridge in ridges:
        with np.errstate(over="ignore"):
            scaled = float(np.clip(ridge / unit / unit, *RIDGE_RANGE))
        fit = ascent.solve(scaled, tol, max_sweeps)
        yield replace(fit, weights=fit.weights / unit, ridge=float(ridge))


class _Ascent:
    """The state of a path: duals and biases, and the weights that follow from them."""

    def __init__(
        self, rows: Matrix, codes: Integers, row_weight: Floats, offset: Floats, duals: _Duals, bias: Floats
    ) -> None:
        from maxdisc.conditional.compiled_ascent import measure_rows

        self.rows, self.codes, self.row_weight, self.offset = rows, codes, row_weight, offset
        self.precision = rows.dtype.type
        self.duals, self.bias = duals.astype(self.precision), bias
        total = row_weight.sum()
        self.center = np.asarray(row_weight @ rows, dtype=np.float64) / total
        square, overlap = np.zeros((2, len(codes)))
        measure_rows(rows.indptr, rows.indices, rows.data, self.center, square, overlap)
        self.center_square = float(self.center @ self.center)
        # Rounding must not make the length of a centred row negative.
        self.square = np.maximum(square - 2 * overlap + self.center_square, 0.0).astype(self.precision)
        self.overlap = overlap.astype(self.precision)
        self.sweep_weight = row_weight.astype(self.precision)
        self.sweep_offset = offset.astype(self.precision)
        self.rng = np.random.default_rng(0)
        self.mass = np.bincount(codes, row_weight, offset.shape[1])
        self.present = self.mass > 0
        self.is_warm = False

    @classmethod
    def of(
        cls,
        rows: Matrix,
        codes: Integers,
        row_weight: Floats,
        n_classes: int,
        offset: Floats | None,
        start: RidgeFit | None,
        unit: float,
    ) -> _Ascent:
        """Begin at a fit, by its duals or its probabilities, or where all weights are 0."""
        if offset is None:
            offset = np.zeros((1, n_classes))
        if start is None:
            duals = np.zeros((len(codes), n_classes), dtype=rows.dtype)
            duals[np.arange(len(codes)), codes] = 1.0
            mass = np.bincount(codes, row_weight, n_classes)
            bias = np.log((mass + FEW_ROWS) / (mass + FEW_ROWS).sum()) - offset.mean(axis=0)
            return cls(rows, codes, row_weight, offset, duals, bias)
        if start.duals is not None:
            return cls(rows, codes, row_weight, offset, start.duals, start.bias)
        duals = np.exp(log_posterior(offset + score_sparse(rows, start.weights * unit) + start.bias))
        ascent = cls(rows, codes, row_weight, offset, duals, start.bias)
        ascent.is_warm = True
        return ascent

    def solve(self, ridge: float, tol: float, max_sweeps: int) -> RidgeFit:
        """Sweep until the gap is small."""
        n_sweeps, most = 0, 0 if self.is_warm else MOST_UNCHECKED
        while True:
            # From the duals each time: single precision drifts.
            more, weights, bias = self._sweep(ridge, tol, 1 + n_sweeps // 8, min(most, max_sweeps - n_sweeps))
            n_sweeps, most = n_sweeps + more, MOST_UNCHECKED + n_sweeps // 2
            fit = self._judge(weights, bias, ridge, n_sweeps, tol)
            self.bias = fit.bias
            if fit.converged or n_sweeps >= max_sweeps:
                self.is_warm = False
                return fit

    def _sweep(self, ridge: float, tol: float, least: int, most: int) -> tuple[int, Floats, Floats]:
        """Sweep until a small gap is to be expected; the number of sweeps, weights and biases."""
        from maxdisc.conditional.compiled_ascent import sweep_rows

        rows, kind, n_classes = self.rows, self.precision, self.offset.shape[1]
        columns, excess = self._columns(self.duals)
        columns /= ridge
        raw, residual = columns.astype(kind), excess.astype(kind)
        center_score = (self.center @ raw).astype(kind)
        bias = (self.bias + center_score - self.center_square / ridge * excess).astype(kind)
        total, before, wait, n_sweeps = self.row_weight.sum(), TINY, 0.0, 0
        while n_sweeps < most:
            apart, loss = sweep_rows(
                rows.indptr,
                rows.indices,
                rows.data,
                self.rng.permutation(len(self.codes)),
                self.codes,
                self.sweep_weight,
                self.sweep_offset,
                bias,
                self.square,
                self.overlap,
                kind(self.center_square),
                kind(ridge),
                raw,
                residual,
                center_score,
                self.duals,
                kind(wait),
            )
            bend = sum(self.sweep_weight[some] @ (d * (1 - d)) for some, d in self._some_of(self.duals))
            move = residual / np.maximum(bend, 1e-3) * (n_classes - 1) / n_classes
            bias += np.where(self.present, np.clip(move, -2.0, 2.0), 0.0).astype(kind)
            n_sweeps += 1
            objective = loss + 0.5 * ridge * float(np.vdot(raw, raw))
            # Rows were seen in the course of the sweep; at its end they are closer, by about its progress.
            if n_sweeps >= least and 2 * apart * min(apart / before, 0.5) <= tol * objective:
                break
            before, wait = max(apart, TINY), WAIT * tol * objective / total
        weights = np.outer(self.center, -residual / ridge)
        weights += raw
        return n_sweeps, weights, bias - self.center @ weights

    def _some_of(self, numbers: _Duals) -> Iterator[tuple[slice, _Duals]]:
        """Yield ranges of rows, and theirs of numbers (n, C)."""
        for some in blocks(len(numbers), numbers.shape[1], NUMBERS_AT_A_TIME):
            yield some, numbers[some]

    def _columns(self, probability: _Duals, add_to: Floats | None = None) -> tuple[Floats, Floats]:
        """Sums over the columns (K, C) and classes (C,) of what the classes have beyond probabilities."""
        from maxdisc.conditional.compiled_ascent import sum_columns

        rows, n_classes = self.rows, probability.shape[1]
        out = np.zeros((rows.shape[1], n_classes)) if add_to is None else add_to
        total = np.zeros(n_classes)
        for some, theirs in self._some_of(probability):
            surplus = -theirs.astype(np.float64)
            surplus[np.arange(len(surplus)), self.codes[some]] += 1.0
            surplus *= self.row_weight[some, None]
            total += surplus.sum(axis=0)
            if surplus.any():
                sum_columns(rows.indptr[some.start : some.stop + 1], rows.indices, rows.data, surplus, out)
        return out, total

    def _judge(self, weights: Floats, bias: Floats, ridge: float, n_sweeps: int, tol: float) -> RidgeFit:
        """Find the best biases for these weights, and the gap."""
        # The one table of that size and precision: it holds scores, and then probabilities.
        table = score_sparse(self.rows, weights)
        table += self.offset
        seen = np.empty(len(table))
        for some, scores in self._some_of(table):
            log_p = log_posterior(scores + bias)
            seen[some] = log_p[np.arange(len(log_p)), self.codes[some]]
            np.exp(log_p, out=scores)
        bias = self._match_classes(table, seen, bias, max(BIAS_TOLERANCE * tol, ROUNDING))
        objective = 0.5 * ridge * float(np.vdot(weights, weights)) - float(self.row_weight @ seen)
        slope, residual = self._columns(table, -ridge * weights)
        # Of centred rows: the squares of the slope less the outer product of the mean row and the residual.
        squares = np.vdot(slope, slope) - 2 * (self.center @ slope) @ residual
        squares += self.center_square * float(residual @ residual)
        gap = max(float(squares), 0.0) / (2 * ridge)
        return RidgeFit(weights, bias, ridge, objective, gap, n_sweeps, gap <= tol * objective, self.duals)

    def _match_classes(self, probability: Floats, seen: Floats, bias: Floats, tol: float) -> Floats:
        """Change biases until sums of probabilities are those of the classes; these are changed in place.

        ``seen`` are the log probabilities of the rows' own classes, changed as well.
        """
        for _ in range(BIAS_STEPS):
            residual = np.where(self.present, self.mass - self.row_weight @ probability, 0.0)
            if np.abs(residual).sum() <= tol * self.mass.sum():
                break
            step = self._bias_step(probability, residual)
            bias, factor = bias + step, np.exp(step)
            for some, theirs in self._some_of(probability):
                theirs *= factor
                total = theirs.sum(axis=1, keepdims=True)
                theirs /= total
                seen[some] += step[self.codes[some]] - np.log(total[:, 0])
        return bias

    def _bias_step(self, probability: Floats, residual: Floats) -> Floats:
        """Newton's step for the biases, of bounded length."""
        weight, mass = self.row_weight[:, None], self.row_weight @ probability
        if len(residual) > MANY_CLASSES:
            squares = sum(self.row_weight[some] @ p**2 for some, p in self._some_of(probability))
            return np.asarray(np.clip(residual / np.maximum(mass - squares, 1e-12), -1.0, 1.0))
        bend = np.diag(mass) - sum(p.T @ (p * weight[some]) for some, p in self._some_of(probability))
        # All biases together may move freely.
        bend += np.full_like(bend, np.trace(bend) / len(bend) ** 2) + 1e-12 * np.eye(len(bend))
        return np.asarray(np.clip(np.linalg.solve(bend, residual), -2.0, 2.0)) * self.present
