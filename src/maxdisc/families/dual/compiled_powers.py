"""The dual for powers, problem by problem: a quick Newton on shared nodes, and an exact one on panels of its
own.

Everything happens in ``z``, the rescaled x of each problem. On shared nodes the statistics are Legendre
polynomials,
whose products are combinations of the first 2 L + 1: so many sums give the gradient and the Hessian.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.families.dual.compiled_steps import (
    LENGTH,
    SLOPE,
    STALLED,
    VALUE,
    WORST,
    accepts,
    begin_anew,
    exp_of_negative,
    factorise,
    finished,
    redirects,
    solve_factorised,
)
from maxdisc.numerics.compiling import inlined, kernel

#: As in :mod:`maxdisc.families.dual`.
LOST = 45.0
ROUGH = 1e-8
N_NODES = 16
#: More panels than this no density of powers needs.
MOST_PANELS = 1500


# -------------------------------------------------------------------------------------------- shared nodes


@kernel
def newton_on_nodes(
    targets: Any,
    table: Any,
    weights: Any,
    combine: Any,
    first: Any,
    last: Any,
    max_iter: Any,
    tolerance: Any,
    theta: Any,
    residual: Any,
    n_iter: Any,
) -> None:
    """Damped Newton for some problems on the same nodes, from theta = 0.

    ``targets`` and ``theta`` are (M, L); ``table`` (R, G) holds the statistics, then what else it takes to
    combine the
    means of all rows, with 1 before them, into the second moments: ``combine`` (L, L, R + 1).
    """
    n_statistics, n_rows, n_nodes = targets.shape[1], table.shape[0], table.shape[1]
    exponent, values = np.empty(n_nodes), np.empty(n_nodes)
    sums = np.empty(n_rows + 1)
    now, step = np.zeros(n_statistics), np.zeros(n_statistics)
    error, trial_error = np.zeros(n_statistics), np.zeros(n_statistics)
    matrix, factor = np.zeros((n_statistics, n_statistics)), np.zeros((n_statistics, n_statistics))
    for m in range(first, last):
        for k in range(n_statistics):
            now[k] = 0.0
            step[k] = 0.0
        length, value, worst, slope = 1.0, np.inf, np.inf, 0.0
        count = 0
        while count < max_iter:
            count += 1
            for g in range(n_nodes):
                exponent[g] = 0.0
            inner = 0.0
            for k in range(n_statistics):
                t = now[k] + length * step[k]
                inner += t * targets[m, k]
                for g in range(n_nodes):
                    exponent[g] += t * table[k, g]
            top = exponent[0]
            for g in range(n_nodes):
                top = max(top, exponent[g])
            for g in range(n_nodes):
                values[g] = weights[g] * exp_of_negative(exponent[g] - top)
            for r in range(n_rows + 1):
                sums[r] = 0.0
            sums[0] = _total(values)
            for r in range(n_rows):
                sums[r + 1] = _inner(values, table[r])
            for r in range(1, n_rows + 1):
                sums[r] /= sums[0]
            trial = top + np.log(sums[0]) - inner
            left = 0.0
            for k in range(n_statistics):
                trial_error[k] = sums[k + 1] - targets[m, k]
                left = max(left, abs(trial_error[k]))
            flat = abs(slope) < 1e-10 * (1.0 + abs(value))
            if count == 1:
                good = True
            elif flat:
                good = left < worst
            else:
                good = trial <= value + 1e-4 * length * slope
            if not good:
                length *= 0.25
                if length < 1e-9:
                    break
                continue
            value, worst = trial, left
            for k in range(n_statistics):
                now[k] += length * step[k]
                error[k] = trial_error[k]
            if worst <= tolerance:
                break
            sums[0] = 1.0
            for i in range(n_statistics):
                for j in range(i + 1):
                    total = 0.0
                    for r in range(combine.shape[2]):
                        total += combine[i, j, r] * sums[r]
                    matrix[i, j] = total - sums[i + 1] * sums[j + 1]
            if not factorise(matrix, factor):
                break
            solve_factorised(matrix, factor, error, step)
            slope = 0.0
            for k in range(n_statistics):
                step[k] = -step[k]
                slope += step[k] * error[k]
            length = min(1.0, 4.0 * length)
        residual[m] = worst
        n_iter[m] = count
        for k in range(n_statistics):
            theta[m, k] = now[k]


@inlined
def _total(values: Any) -> Any:
    """The sum, in eight parts that are added side by side."""
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(0, values.size - 7, 8):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        e += values[i + 4]
        f += values[i + 5]
        g += values[i + 6]
        h += values[i + 7]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@inlined
def _inner(values: Any, row: Any) -> Any:
    """The inner product, in eight parts that are added side by side."""
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(0, values.size - 7, 8):
        a += values[i] * row[i]
        b += values[i + 1] * row[i + 1]
        c += values[i + 2] * row[i + 2]
        d += values[i + 3] * row[i + 3]
        e += values[i + 4] * row[i + 4]
        f += values[i + 5] * row[i + 5]
        g += values[i + 6] * row[i + 6]
        h += values[i + 7] * row[i + 7]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


# -------------------------------------------------------------------------------------- panels of one's own


@inlined
def _look(
    theta: Any,
    center: Any,
    half: Any,
    row: Any,
    shift: Any,
    scale: Any,
    nodes: Any,
    weights: Any,
    z: Any,
    exponent: Any,
    panel: Any,
) -> None:
    """What is known of one panel: top, bound, mass, roughness."""
    n, inverse = theta.size, 1.0 / scale
    for i in range(N_NODES):
        z[i] = ((center - shift) + half * nodes[row, i]) * inverse
        total = 0.0
        for k in range(n - 1, -1, -1):
            total = (total + theta[k]) * z[i]
        exponent[i] = total
    at, top = -1, -np.inf
    for i in range(N_NODES):
        # Beyond all numbers there is no mass, or no density.
        if weights[row, i] > 0.0 and exponent[i] > top and exponent[i] < np.inf:
            at, top = i, exponent[i]
    panel[0], panel[1], panel[2], panel[3], panel[5] = top, top, 0.0, 0.0, 0.0
    # The squares of the statistics are integrated too: they may be large where there is hardly any mass.
    farthest = max(abs(z[0]), abs(z[N_NODES - 1]))
    panel[4] = n * np.log(1.0 + farthest * farthest)
    if at < 0:
        return
    # What rounding of the exponent makes of the values.
    terms, power = 0.0, 1.0
    for k in range(n):
        power *= abs(z[at])
        terms += abs(theta[k]) * power
    panel[5] = 4e-16 * terms
    climb = 0.0
    if at > 0 and exponent[at - 1] > -np.inf:
        climb = abs(top - exponent[at - 1])
    if at < N_NODES - 1 and exponent[at + 1] > -np.inf:
        climb = max(climb, abs(top - exponent[at + 1]))
    panel[1] = top + climb


@inlined
def _weigh(row: Any, half: Any, weights: Any, tails: Any, exponent: Any, values: Any, panel: Any) -> None:
    """Mass and roughness of the panel that was looked at."""
    mass = 0.0
    for i in range(N_NODES):
        values[i] = exp_of_negative(min(exponent[i] - panel[0], 0.0))
        if not exponent[i] > -np.inf:
            values[i] = 0.0
        mass += values[i] * weights[row, i]
    rough = 0.0
    for k in range(tails.shape[2]):
        total = 0.0
        for i in range(N_NODES):
            total += values[i] * tails[row, i, k]
        rough = max(rough, abs(total))
    panel[2], panel[3] = 2.0 * half * mass, 2.0 * half * rough


@inlined
def _integrals(
    theta: Any,
    places: Any,
    n_places: Any,
    lattice: Any,
    shift: Any,
    scale: Any,
    nodes: Any,
    weights: Any,
    tails: Any,
    panels: Any,
    z: Any,
    exponent: Any,
    values: Any,
    sums: Any,
) -> Any:
    """Log normaliser; means of z^0.. z^2L in ``sums[0]``, of |z|.. |z|^L in ``sums[1, 1:]``, before them the
    z at the top.

    ``panels`` holds center, half, level, top, bound, mass, roughness, what the statistics add, and the noise
    of each panel.
    """
    size = n_places
    for p in range(size):
        panels[p, 0], panels[p, 1], panels[p, 2] = places[p, 0], places[p, 1], places[p, 2]
        row = int(panels[p, 2]) if lattice else 0
        _look(
            theta,
            panels[p, 0],
            panels[p, 1],
            row,
            shift,
            scale,
            nodes,
            weights,
            z,
            exponent,
            panels[p, 3:],
        )
    top, high, total, heavy = -np.inf, -np.inf, 0.0, 0.0
    for p in range(size):
        top = max(top, panels[p, 3])
        high = max(high, panels[p, 3] + panels[p, 7])
    if not top > -np.inf:
        return np.nan
    for p in range(size):
        if panels[p, 4] > top - LOST or panels[p, 4] + panels[p, 7] > high - LOST:
            row = int(panels[p, 2]) if lattice else 0
            _look(
                theta,
                panels[p, 0],
                panels[p, 1],
                row,
                shift,
                scale,
                nodes,
                weights,
                z,
                exponent,
                panels[p, 3:],
            )
            _weigh(row, panels[p, 1], weights, tails, exponent, values, panels[p, 3:])
    for _ in range(80):
        top, high, total, heavy = -np.inf, -np.inf, 0.0, 0.0
        for p in range(size):
            top = max(top, panels[p, 3])
            high = max(high, panels[p, 3] + panels[p, 7])
        for p in range(size):
            if panels[p, 5] > 0.0:
                total += panels[p, 5] * exp_of_negative(panels[p, 3] - top)
                heavy += panels[p, 5] * exp_of_negative(panels[p, 3] + panels[p, 7] - high)
        old = size
        for p in range(old):
            light = not panels[p, 4] > top - LOST
            if light and not panels[p, 4] + panels[p, 7] > high - LOST:
                continue
            unseen = panels[p, 3] < top - LOST and panels[p, 3] + panels[p, 7] < high - LOST
            if (
                not unseen
                and panels[p, 6] * exp_of_negative(panels[p, 3] - top) <= (ROUGH + panels[p, 8]) * total
                and panels[p, 6] * exp_of_negative(panels[p, 3] + panels[p, 7] - high)
                <= (ROUGH + panels[p, 8]) * heavy
            ):
                continue
            if lattice:
                if panels[p, 2] <= 4:
                    continue
            elif panels[p, 1] <= 1e-13 * max(abs(panels[p, 0]), 1e-12):
                continue
            if size >= MOST_PANELS:
                return np.nan
            half = panels[p, 1] / 2
            panels[size, 0], panels[size, 1], panels[size, 2] = panels[p, 0] + half, half, panels[p, 2] - 1
            panels[p, 0], panels[p, 1], panels[p, 2] = panels[p, 0] - half, half, panels[p, 2] - 1
            row = int(panels[p, 2]) if lattice else 0
            for q in (p, size):
                _look(
                    theta,
                    panels[q, 0],
                    half,
                    row,
                    shift,
                    scale,
                    nodes,
                    weights,
                    z,
                    exponent,
                    panels[q, 3:],
                )
                _weigh(row, half, weights, tails, exponent, values, panels[q, 3:])
            size += 1
        if size == old:
            break
    return _sum_panels(
        theta, size, lattice, shift, scale, nodes, weights, panels, top, high, z, exponent, values, sums
    )


@inlined
def _sum_panels(
    theta: Any,
    size: Any,
    lattice: Any,
    shift: Any,
    scale: Any,
    nodes: Any,
    weights: Any,
    panels: Any,
    top: Any,
    high: Any,
    z: Any,
    exponent: Any,
    values: Any,
    sums: Any,
) -> Any:
    """Write the means over panels that are fine enough, as ``_integrals`` returns them."""
    n = theta.size
    for k in range(2 * n + 1):
        sums[0, k] = 0.0
        sums[1, k] = 0.0
    for p in range(size):
        if panels[p, 3] < top - LOST and panels[p, 3] + panels[p, 7] < high - LOST:
            continue
        half = panels[p, 1]
        row = int(panels[p, 2]) if lattice else 0
        _look(theta, panels[p, 0], half, row, shift, scale, nodes, weights, z, exponent, panels[p, 3:])
        for i in range(N_NODES):
            values[i] = 0.0
            if exponent[i] > -np.inf:
                values[i] = 2.0 * half * weights[row, i] * exp_of_negative(min(exponent[i] - top, 0.0))
        for k in range(2 * n + 1):
            together, magnitude = 0.0, 0.0
            for i in range(N_NODES):
                together += values[i]
                magnitude += abs(values[i])
                values[i] *= z[i]
            sums[0, k] += together
            sums[1, k] += magnitude
    for k in range(2 * n, -1, -1):
        sums[0, k] /= sums[0, 0] if k else 1.0
        sums[1, k] /= sums[0, 0]
    for p in range(size):
        if panels[p, 3] == top:
            sums[1, 0] = (panels[p, 0] - shift) / scale
    return top + np.log(sums[0, 0])


@kernel
def powers_integrals(
    theta: Any,
    places: Any,
    n_places: Any,
    lattice: Any,
    shift: Any,
    scale: Any,
    nodes: Any,
    weights: Any,
    tails: Any,
    first: Any,
    last: Any,
    log_partition: Any,
    mean: Any,
) -> None:
    """Log normalisers (M,) and means (M, L) of the powers of z, for parameters (M, L)."""
    n = theta.shape[1]
    panels, sums = np.empty((MOST_PANELS, 9)), np.empty((2, 2 * n + 1))
    z, exponent, values = np.empty(N_NODES), np.empty(N_NODES), np.empty(N_NODES)
    for m in range(first, last):
        log_partition[m] = _integrals(
            theta[m],
            places[m],
            n_places[m],
            lattice,
            shift[m],
            scale[m],
            nodes,
            weights,
            tails,
            panels,
            z,
            exponent,
            values,
            sums,
        )
        for k in range(n):
            mean[m, k] = sums[0, k + 1]


@kernel
def powers_newton(
    targets: Any,
    tail: Any,
    begin: Any,
    candidates: Any,
    places: Any,
    n_places: Any,
    lattice: Any,
    shift: Any,
    scale: Any,
    nodes: Any,
    weights: Any,
    tails: Any,
    first: Any,
    last: Any,
    max_iter: Any,
    theta: Any,
    residual: Any,
    n_iter: Any,
) -> None:
    """Damped Newton for the powers of z, each problem on panels of its own.

    It begins at ``begin`` (M, L) if that is nearly right, else at the best of it and the ``candidates``
    (K, M, L); if that leads nowhere, at every candidate in turn. ``tail`` is the sign that the parameter of
    the highest power must not have, 0 on bounded supports.
    """
    n = targets.shape[1]
    panels, sums = np.empty((MOST_PANELS, 9)), np.empty((2, 2 * n + 1))
    z, exponent, values = np.empty(N_NODES), np.empty(N_NODES), np.empty(N_NODES)
    now, step, trial, peak, aside = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    error, matrix, factor, state = np.zeros(n), np.zeros((n, n)), np.zeros((n, n)), np.zeros(6)
    for m in range(first, last):
        count, best = 0, np.inf
        for attempt in range(candidates.shape[0] + 1):
            begin_anew(state)
            used, ready, next_candidate = 0, False, -1
            while used < max_iter:
                if ready:
                    for k in range(n):
                        trial[k] = now[k] + state[LENGTH] * step[k]
                elif attempt == 0 and next_candidate < 0:
                    for k in range(n):
                        trial[k] = begin[m, k]
                else:
                    for k in range(n):
                        trial[k] = candidates[next_candidate if attempt == 0 else attempt - 1, m, k]
                count += 1
                used += 1
                found = _integrals(
                    trial,
                    places[m],
                    n_places[m],
                    lattice,
                    shift[m],
                    scale[m],
                    nodes,
                    weights,
                    tails,
                    panels,
                    z,
                    exponent,
                    values,
                    sums,
                )
                left = 0.0
                for k in range(n):
                    found -= trial[k] * targets[m, k]
                    left = max(left, abs(sums[0, k + 1] - targets[m, k]) / max(sums[1, k + 1], 1e-300))
                good = accepts(state, ready, found, left)
                if good:
                    for k in range(n):
                        now[k] = trial[k]
                        error[k] = sums[0, k + 1] - targets[m, k]
                        for j in range(k + 1):
                            matrix[k, j] = sums[0, k + j + 2] - sums[0, k + 1] * sums[0, j + 1]
                if not ready:
                    next_candidate += 1
                    if attempt == 0 and state[WORST] > 1e-3 and next_candidate < candidates.shape[0]:
                        continue
                    ready, state[STALLED] = True, 0.0
                    if not state[VALUE] < np.inf:
                        break
                    good = True
                if finished(state):
                    break
                power = 1.0
                for k in range(n):
                    power *= sums[1, 0]
                    peak[k] = power - targets[m, k]
                if not redirects(good, state, error, matrix, factor, peak, aside, step):
                    break
                # A tail must fall: a step that would let it rise is turned to where it still falls a little.
                if good and tail != 0.0 and tail * (now[n - 1] + step[n - 1]) >= 0.0:
                    for k in range(n):
                        peak[k] = 1.0 if k == n - 1 else 0.0
                    solve_factorised(matrix, factor, peak, aside)
                    excess = (step[n - 1] + 0.9 * now[n - 1]) / aside[n - 1]
                    state[SLOPE] = 0.0
                    for k in range(n):
                        step[k] -= excess * aside[k]
                        state[SLOPE] += step[k] * error[k]
            if state[WORST] < best:
                best = state[WORST]
                for k in range(n):
                    theta[m, k] = now[k]
            # Another beginning leads around what stood in the way of this one.
            if best <= 1e-9:
                break
        if not best < np.inf:
            for k in range(n):
                theta[m, k] = 0.0
        residual[m] = best
        n_iter[m] = count
