"""The dual for any functions, problem by problem, on one tree of panels that all problems share.

The functions were evaluated at the nodes of the tree, so that a problem only reads. Where it needs a panel
that has not been halved yet it asks for that, and ends; it is solved anew, from its beginning, once the tree
has grown. What becomes of a problem hence does not depend on the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.families.dual.compiled_powers import LOST, N_NODES, ROUGH
from maxdisc.families.dual.compiled_steps import (
    LENGTH,
    VALUE,
    WORST,
    accepts,
    begin_anew,
    exp_of_negative,
    finished,
    redirects,
)
from maxdisc.numerics.compiling import inlined, kernel

#: More panels than this no density needs.
MOST_PANELS = 1500
# What is known of a panel: largest log integrand, a bound of it between the nodes, mass, roughness, noise.
TOP, BOUND, MASS, RUGGED, NOISE, SEEN = 0, 1, 2, 3, 4, 5


@inlined
def _read(theta: Any, center: Any, statistics: Any, node: Any, exponent: Any, panels: Any, p: Any) -> None:
    """Exponents at the nodes of a panel, with its largest, and a bound of it between the nodes."""
    n = theta.size
    for i in range(exponent.size):
        exponent[i] = statistics[node, n, i]
    for k in range(n):
        factor, middle = theta[k], center[k]
        for i in range(exponent.size):
            exponent[i] += factor * (statistics[node, k, i] - middle)
    # Where a statistic is beyond all numbers there is no mass, or no density.
    for i in range(exponent.size):
        exponent[i] = exponent[i] if abs(exponent[i]) < np.inf else -np.inf
    a, b, c, d = -np.inf, -np.inf, -np.inf, -np.inf
    for i in range(0, exponent.size - 3, 4):
        a = a if a > exponent[i] else exponent[i]
        b = b if b > exponent[i + 1] else exponent[i + 1]
        c = c if c > exponent[i + 2] else exponent[i + 2]
        d = d if d > exponent[i + 3] else exponent[i + 3]
    a = a if a > b else b
    c = c if c > d else d
    top = a if a > c else c
    panels[p, TOP], panels[p, BOUND], panels[p, MASS], panels[p, RUGGED], panels[p, SEEN] = (
        top,
        top,
        0.0,
        0.0,
        0.0,
    )
    if not top > -np.inf:
        return
    at = 0
    while exponent[at] < top:
        at += 1
    climb, terms = 0.0, 0.0
    if at > 0 and exponent[at - 1] > -np.inf:
        climb = top - exponent[at - 1]
    if at < N_NODES - 1 and exponent[at + 1] > -np.inf:
        climb = max(climb, top - exponent[at + 1])
    panels[p, BOUND] = top + climb
    for k in range(n):
        terms += abs(theta[k] * (statistics[node, k, at] - center[k]))
    panels[p, NOISE] = 4e-16 * terms


@inlined
def _weigh(
    size: Any, row: Any, weights: Any, tails: Any, exponent: Any, values: Any, panels: Any, p: Any
) -> None:
    """Values at the nodes times weights, mass and roughness, all in units of the largest value."""
    top = panels[p, TOP]
    for i in range(exponent.size):
        values[p, i] = exp_of_negative(exponent[i] - top)
    mass, a, b, c, d = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(exponent.size):
        value = values[p, i]
        a += value * tails[row, i, 0]
        b += value * tails[row, i, 1]
        c += value * tails[row, i, 2]
        d += value * tails[row, i, 3]
        mass += value * weights[row, i]
    for i in range(exponent.size):
        values[p, i] *= size * weights[row, i]
    rough = max(max(abs(a), abs(b)), max(abs(c), abs(d)))
    panels[p, MASS], panels[p, RUGGED] = size * mass, size * rough


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
    sums: Any,
    mean: Any,
    magnitude: Any,
    second: Any,
    peak: Any,
) -> tuple[Any, Any]:
    """Log normaliser of ``exp(theta . (phi - center))``, and whether panels are asked for.

    ``mean`` and ``second`` are those of ``phi - center``, ``peak`` is its value where the integrand is
    largest, and ``magnitude`` the mean of ``|phi|``.
    """
    count, depth = n_roots, 0
    for p in range(count):
        ids[p] = p
        _read(theta, center, statistics, p, exponent, panels, p)
    top, high = -np.inf, -np.inf
    for p in range(count):
        top, high = max(top, panels[p, TOP]), max(high, panels[p, TOP] + weight[ids[p]])
    if not top > -np.inf:
        return np.nan, False
    for p in range(count):
        if panels[p, BOUND] > top - LOST or panels[p, BOUND] + weight[p] > high - LOST:
            _read(theta, center, statistics, p, exponent, panels, p)
            _weigh(size[p], rule[p], weights, tails, exponent, values, panels, p)
    asked, again = False, False
    while depth < 80 and not asked:
        depth += 1
        top, high, total, heavy, old = -np.inf, -np.inf, 0.0, 0.0, count
        for p in range(count):
            top, high = max(top, panels[p, TOP]), max(high, panels[p, TOP] + weight[ids[p]])
        for p in range(count):
            heavier = panels[p, TOP] + weight[ids[p]] - high
            if panels[p, MASS] > 0.0 and (panels[p, TOP] > top - LOST or heavier > -LOST):
                total += panels[p, MASS] * exp_of_negative(panels[p, TOP] - top)
                heavy += panels[p, MASS] * exp_of_negative(heavier)
        for p in range(old):
            # What was good enough is looked at once more at the end.
            if panels[p, SEEN] > 0.0 and not again:
                continue
            panels[p, SEEN] = 1.0
            this = ids[p]
            heavier = weight[this] - high
            # What neither has mass nor adds to a square is left alone, also between the nodes.
            if not panels[p, BOUND] > top - LOST and not panels[p, BOUND] + heavier > -LOST:
                continue
            unseen = panels[p, TOP] < top - LOST and panels[p, TOP] + heavier < -LOST
            allowed = ROUGH + panels[p, NOISE]
            if (
                not unseen
                and panels[p, RUGGED] * exp_of_negative(panels[p, TOP] - top) <= allowed * total
                and panels[p, RUGGED] * exp_of_negative(panels[p, TOP] + heavier) <= allowed * heavy
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
                _read(theta, center, statistics, new, exponent, panels, at)
                _weigh(size[new], rule[new], weights, tails, exponent, values, panels, at)
            count += 1
        if count == old and again:
            break
        again = count == old
    if asked:
        return np.nan, True
    log_partition = _sum_panels(
        theta.size, center, statistics, count, weight, ids, panels, top, high, values, exponent, sums,
        mean, magnitude, second, peak,
    )  # fmt: skip
    return log_partition, False


@inlined
def _sum_panels(
    n: Any,
    center: Any,
    statistics: Any,
    count: Any,
    weight: Any,
    ids: Any,
    panels: Any,
    top: Any,
    high: Any,
    values: Any,
    exponent: Any,
    sums: Any,
    mean: Any,
    magnitude: Any,
    second: Any,
    peak: Any,
) -> Any:
    """Write the means over panels that are fine enough, as ``_tree_integrals`` returns them."""
    # Sums over each node of all panels, side by side.
    for r in range(sums.shape[0]):
        for i in range(exponent.size):
            sums[r, i] = 0.0
    for p in range(count):
        if panels[p, TOP] < top - LOST and panels[p, TOP] + weight[ids[p]] < high - LOST:
            continue
        share, node = exp_of_negative(panels[p, TOP] - top), ids[p]
        for i in range(exponent.size):
            values[p, i] *= share
            sums[0, i] += values[p, i]
        r = 2 * n + 1
        for k in range(n):
            for i in range(exponent.size):
                exponent[i] = values[p, i] * (statistics[node, k, i] - center[k])
                sums[k + 1, i] += exponent[i]
                sums[n + k + 1, i] += values[p, i] * abs(statistics[node, k, i])
            for j in range(k + 1):
                for i in range(exponent.size):
                    sums[r, i] += exponent[i] * (statistics[node, j, i] - center[j])
                r += 1
        if panels[p, TOP] == top:
            at = 0
            for i in range(exponent.size):
                at = i if values[p, i] > values[p, at] else at
            for k in range(n):
                peak[k] = statistics[node, k, at] - center[k]
    for r in range(sums.shape[0]):
        for i in range(1, exponent.size):
            sums[r, 0] += sums[r, i]
    total, r = sums[0, 0], 2 * n + 1
    for k in range(n):
        mean[k] = sums[k + 1, 0] / total
        magnitude[k] = sums[n + k + 1, 0] / total
        for j in range(k + 1):
            second[k, j] = sums[r, 0] / total
            r += 1
    return top + np.log(total)


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
    ids, panels = np.empty(MOST_PANELS + n_roots, dtype=np.intp), np.zeros((MOST_PANELS + n_roots, 6))
    values, exponent = np.zeros((MOST_PANELS + n_roots, N_NODES)), np.empty(N_NODES)
    sums = np.empty((1 + 2 * n + n * (n + 1) // 2, N_NODES))
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
            sums,
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
    ids, panels = np.empty(MOST_PANELS + n_roots, dtype=np.intp), np.zeros((MOST_PANELS + n_roots, 6))
    values, exponent = np.zeros((MOST_PANELS + n_roots, N_NODES)), np.empty(N_NODES)
    sums = np.empty((1 + 2 * n + n * (n + 1) // 2, N_NODES))
    now, step, trial, peak, aside = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    error, wrong, magnitude, state = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(6)
    matrix, factor, second = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    for m in which:
        best, asked[m], n_iter[m] = np.inf, False, 0
        for attempt in range(begin.shape[0]):
            begin_anew(state)
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
                    sums,
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
                good = accepts(state, used > 0, found, left)
                if good:
                    for k in range(n):
                        now[k], error[k] = trial[k], wrong[k]
                        for j in range(k + 1):
                            matrix[k, j] = second[k, j] - wrong[k] * wrong[j]
                elif used == 0:
                    break
                if finished(state):
                    break
                if not redirects(good, state, error, matrix, factor, peak, aside, step):
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
