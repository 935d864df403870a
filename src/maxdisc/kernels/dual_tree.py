"""The dual for any functions, problem by problem, on one tree of panels that all problems share.

The functions were evaluated at the nodes of the tree, so that a problem only reads. Where it needs a panel that has
not been halved yet it asks for that, and ends; it is solved anew, from its beginning, once the tree has grown. What
becomes of a problem hence does not depend on the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.kernels.compiling import inlined, kernel
from maxdisc.kernels.dual import (
    LENGTH,
    LOST,
    N_NODES,
    ROUGH,
    VALUE,
    WORST,
    _accepts,
    _begin,
    _exp,
    _finished,
    _redirects,
)

#: More panels than this no density needs.
MOST_PANELS = 1500
# What is known of a panel: largest log integrand, a bound of it between the nodes, mass, roughness, noise.
TOP, BOUND, MASS, RUGGED, NOISE = 0, 1, 2, 3, 4
# What became of a problem.
ENDED, ASKED = 0, 1


@inlined
def _read(theta: Any, center: Any, statistics: Any, exponent: Any, panel: Any) -> None:
    """Exponents at the nodes of a panel, with its largest, and a bound of it between the nodes."""
    n = theta.size
    for i in range(N_NODES):
        exponent[i] = statistics[n, i]
    for k in range(n):
        for i in range(N_NODES):
            exponent[i] += theta[k] * (statistics[k, i] - center[k])
    at, top = 0, -np.inf
    for i in range(N_NODES):
        if exponent[i] > top and exponent[i] < np.inf:
            at, top = i, exponent[i]
    panel[TOP], panel[BOUND], panel[MASS], panel[RUGGED] = top, top, 0.0, 0.0
    if not top > -np.inf:
        return
    climb, terms = 0.0, 0.0
    if at > 0 and exponent[at - 1] > -np.inf:
        climb = abs(top - exponent[at - 1])
    if at < N_NODES - 1 and exponent[at + 1] > -np.inf:
        climb = max(climb, abs(top - exponent[at + 1]))
    panel[BOUND] = top + climb
    for k in range(n):
        terms += abs(theta[k] * (statistics[k, at] - center[k]))
    panel[NOISE] = 4e-16 * terms


@inlined
def _weigh(size: Any, weights: Any, tails: Any, exponent: Any, values: Any, panel: Any) -> None:
    """Values at the nodes times weights, mass and roughness, all in units of the largest value."""
    for i in range(N_NODES):
        # Where a statistic is beyond all numbers there is no mass, or no density.
        usable = exponent[i] > -np.inf and exponent[i] < np.inf
        values[i] = _exp(exponent[i] - panel[TOP]) if usable else 0.0
    rough = 0.0
    for k in range(tails.shape[0]):
        total = 0.0
        for i in range(N_NODES):
            total += values[i] * tails[k, i]
        rough = max(rough, abs(total))
    mass = 0.0
    for i in range(N_NODES):
        values[i] *= size * weights[i]
        mass += values[i]
    panel[MASS], panel[RUGGED] = mass, size * rough


@inlined
def _tree_integrals(
    theta: Any,
    center: Any,
    statistics: Any,
    size: Any,
    rule: Any,
    child: Any,
    weight: Any,
    n_roots: Any,
    weights: Any,
    tails: Any,
    wanted: Any,
    ids: Any,
    panels: Any,
    values: Any,
    exponent: Any,
    mean: Any,
    magnitude: Any,
    second: Any,
    peak: Any,
) -> tuple[Any, Any]:
    """Log normaliser of ``exp(theta . (phi - center))``, and whether panels are asked for.

    ``mean`` and ``second`` are those of ``phi - center``, ``peak`` is its value where the integrand is largest, and
    ``magnitude`` the mean of ``|phi|``.
    """
    n, count, depth = theta.size, n_roots, 0
    for p in range(count):
        ids[p] = p
        _read(theta, center, statistics[p], exponent, panels[p])
    top, high = -np.inf, -np.inf
    for p in range(count):
        top, high = max(top, panels[p, TOP]), max(high, panels[p, TOP] + weight[ids[p]])
    if not top > -np.inf:
        return np.nan, False
    for p in range(count):
        if panels[p, BOUND] > top - LOST or panels[p, BOUND] + weight[p] > high - LOST:
            _read(theta, center, statistics[p], exponent, panels[p])
            _weigh(size[p], weights[rule[p]], tails[rule[p]], exponent, values[p], panels[p])
    asked = False
    while depth < 80 and not asked:
        depth += 1
        top, high, total, heavy, old = -np.inf, -np.inf, 0.0, 0.0, count
        for p in range(count):
            top, high = max(top, panels[p, TOP]), max(high, panels[p, TOP] + weight[ids[p]])
        for p in range(count):
            if panels[p, MASS] > 0.0:
                total += panels[p, MASS] * _exp(panels[p, TOP] - top)
                heavy += panels[p, MASS] * _exp(panels[p, TOP] + weight[ids[p]] - high)
        for p in range(old):
            this = ids[p]
            heavier = weight[this] - high
            # What neither has mass nor adds to a square is left alone, also between the nodes.
            if not panels[p, BOUND] > top - LOST and not panels[p, BOUND] + heavier > -LOST:
                continue
            unseen = panels[p, TOP] < top - LOST and panels[p, TOP] + heavier < -LOST
            allowed = ROUGH + panels[p, NOISE]
            if (
                not unseen
                and panels[p, RUGGED] * _exp(panels[p, TOP] - top) <= allowed * total
                and panels[p, RUGGED] * _exp(panels[p, TOP] + heavier) <= allowed * heavy
            ):
                continue
            if child[this] == -2:
                continue
            if child[this] == -1:
                wanted[this] = 1
                asked = True
                continue
            if count >= MOST_PANELS:
                return np.nan, False
            for part in range(2):
                at = count if part else p
                new = child[this] + part
                ids[at] = new
                _read(theta, center, statistics[new], exponent, panels[at])
                _weigh(size[new], weights[rule[new]], tails[rule[new]], exponent, values[at], panels[at])
            count += 1
        if count == old:
            break
    if asked:
        return np.nan, True
    total = 0.0
    for k in range(n):
        mean[k], magnitude[k], peak[k] = 0.0, 0.0, 0.0
        for j in range(n):
            second[k, j] = 0.0
    for p in range(count):
        if panels[p, TOP] < top - LOST and panels[p, TOP] + weight[ids[p]] < high - LOST:
            continue
        share, row = _exp(panels[p, TOP] - top), statistics[ids[p]]
        total += share * panels[p, MASS]
        for i in range(N_NODES):
            values[p, i] *= share
        for k in range(n):
            for i in range(N_NODES):
                exponent[i] = values[p, i] * (row[k, i] - center[k])
                mean[k] += exponent[i]
                magnitude[k] += values[p, i] * abs(row[k, i])
            for j in range(k + 1):
                for i in range(N_NODES):
                    second[k, j] += exponent[i] * (row[j, i] - center[j])
        if panels[p, TOP] == top:
            at = np.argmax(values[p])
            for k in range(n):
                peak[k] = row[k, at] - center[k]
    for k in range(n):
        mean[k] /= total
        magnitude[k] /= total
        for j in range(k + 1):
            second[k, j] /= total
    return top + np.log(total), False


@kernel
def tree_integrals(
    theta: Any,
    statistics: Any,
    size: Any,
    rule: Any,
    child: Any,
    weight: Any,
    n_roots: Any,
    weights: Any,
    tails: Any,
    wanted: Any,
    which: Any,
    log_partition: Any,
    mean: Any,
    asked: Any,
) -> None:
    """Log normalisers (M,) and means (M, L) for parameters (M, L), and which problems ask for panels."""
    n = theta.shape[1]
    ids, panels = np.empty(MOST_PANELS + n_roots, dtype=np.intp), np.zeros((MOST_PANELS + n_roots, 5))
    values, exponent = np.zeros((MOST_PANELS + n_roots, N_NODES)), np.empty(N_NODES)
    center, magnitude, second, peak = np.zeros(n), np.zeros(n), np.zeros((n, n)), np.zeros(n)
    for m in which:
        log_partition[m], asked[m] = _tree_integrals(
            theta[m],
            center,
            statistics,
            size,
            rule,
            child,
            weight,
            n_roots,
            weights,
            tails,
            wanted,
            ids,
            panels,
            values,
            exponent,
            mean[m],
            magnitude,
            second,
            peak,
        )


@kernel
def tree_newton(
    targets: Any,
    begin: Any,
    statistics: Any,
    size: Any,
    rule: Any,
    child: Any,
    weight: Any,
    n_roots: Any,
    weights: Any,
    tails: Any,
    wanted: Any,
    which: Any,
    max_iter: Any,
    theta: Any,
    residual: Any,
    n_iter: Any,
    asked: Any,
) -> None:
    """Damped Newton for targets (M, L) from ``begin`` (K, M, L), each tried until one leads to the end."""
    n = targets.shape[1]
    ids, panels = np.empty(MOST_PANELS + n_roots, dtype=np.intp), np.zeros((MOST_PANELS + n_roots, 5))
    values, exponent = np.zeros((MOST_PANELS + n_roots, N_NODES)), np.empty(N_NODES)
    now, step, trial, peak, aside = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    error, wrong, magnitude, state = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(6)
    matrix, factor, second = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    for m in which:
        best, asked[m], n_iter[m] = np.inf, False, 0
        for attempt in range(begin.shape[0]):
            _begin(state)
            for k in range(n):
                now[k], step[k] = begin[attempt, m, k], 0.0
            for used in range(max_iter):
                for k in range(n):
                    trial[k] = now[k] + state[LENGTH] * step[k]
                n_iter[m] += 1
                found, asked[m] = _tree_integrals(
                    trial,
                    targets[m],
                    statistics,
                    size,
                    rule,
                    child,
                    weight,
                    n_roots,
                    weights,
                    tails,
                    wanted,
                    ids,
                    panels,
                    values,
                    exponent,
                    wrong,
                    magnitude,
                    second,
                    peak,
                )
                if asked[m]:
                    break
                left = 0.0
                for k in range(n):
                    left = max(left, abs(wrong[k]) / max(magnitude[k], 1e-300))
                good = _accepts(state, used > 0, found, left)
                if good:
                    for k in range(n):
                        now[k], error[k] = trial[k], wrong[k]
                        for j in range(k + 1):
                            matrix[k, j] = second[k, j] - wrong[k] * wrong[j]
                elif used == 0:
                    break
                if _finished(state):
                    break
                if not _redirects(good, state, error, matrix, factor, peak, aside, step):
                    break
            if state[WORST] < best and state[VALUE] < np.inf:
                best = state[WORST]
                for k in range(n):
                    theta[m, k] = now[k]
            if asked[m] or best <= 1e-9:
                break
        if not best < np.inf:
            for k in range(n):
                theta[m, k] = begin[0, m, k]
        residual[m] = best
