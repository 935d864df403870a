"""The dual: two million problems beside the bare exponentials they need, and how many random problems are
solved.

Run with ``make bench-dual``. Times are best of three in one process, on one thread.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np

from maxdisc.families import Gamma, Support, moments
from maxdisc.families.dual import (
    TOLERANCE,
    Problem,
    Status,
    expectations,
    integrals,
    legendre_table,
    solve,
    solve_on_nodes,
)
from maxdisc.families.functions import Cosine, Deviation, LogAbove, LogBelow, Power, Sine

HERE = Path(__file__).resolve().parent
SUPPORTS = {
    "interval": Support(0.0, 1.0),
    "half-line": Support(0.0),
    "line": Support(),
    "counts": Support(0.0, lattice=True),
    "six points": Support(0.0, 5.0, lattice=True),
}


def best(work, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return min(times), result


def speed(n_problems, order=4, n_nodes=64):
    """Seconds for the problems, seconds for as many bare exponentials (numpy's), and evaluations per
    problem.
    """
    rng = np.random.default_rng(0)
    table, weights, combine = legendre_table(order, n_nodes)
    theta = rng.normal(size=(n_problems, order)) * [4, 4, 2, 2]
    targets = np.empty_like(theta)
    for some in np.array_split(np.arange(n_problems), max(1, n_problems // 20_000)):
        mass = weights * np.exp(theta[some] @ table[:order])
        targets[some] = mass @ table[:order].T / mass.sum(axis=1, keepdims=True)
    solve_on_nodes(targets[:10], table, weights, combine)
    took, (_, residual, n_iter) = best(lambda: solve_on_nodes(targets, table, weights, combine))
    numbers = -rng.random(2**16) * 30
    out = np.empty_like(numbers)
    times = int(n_iter.sum()) * n_nodes / len(numbers)
    one, _ = best(lambda: [np.exp(numbers, out=out) for _ in range(200)])
    return {
        "problems": n_problems,
        "moments": order,
        "nodes": n_nodes,
        "evaluations per problem": float(n_iter.mean()),
        "solved to 1e-9 in the moments": float((residual <= 1e-9).mean()),
        "seconds": took,
        "seconds of the bare exponentials": one / 200 * times,
        "ratio": took / (one / 200 * times),
    }


def random_naturals(support, order, n, rng):
    """Parameters of powers: broad and bimodal densities; on intervals means down to a millionth of them."""
    if np.isfinite(support.high):
        coefficients = rng.normal(size=(order, n)) * rng.choice([1.0, 4.0], size=n)
        steepest = 1.4 if support.lattice else 6.0
        coefficients[0] -= rng.choice([0.0, 0.5], size=n) * 10 ** rng.uniform(0, steepest, size=n)
        legendre = [np.polynomial.legendre.leg2poly([0] * k + [1]) for k in range(1, order + 1)]
        half = (support.high - support.low) / 2
        powers = np.zeros((order + 1, n))
        for k, row in enumerate(legendre):
            # The polynomial of (x - middle) / half, in powers of x.
            in_x = np.polynomial.Polynomial(row)(
                np.polynomial.Polynomial([-1 - support.low / half, 1 / half])
            )
            powers[: k + 2] += in_x.coef[:, None] * coefficients[k]
        return powers[1:]
    theta = rng.normal(size=(order, n)) * 0.7
    theta[-1] = -rng.gamma(2.0, 0.3, size=n)
    scale = 10 ** (rng.uniform(0.3, 3, size=n) if support.lattice else rng.uniform(-6, 6, size=n))
    return theta / scale ** np.arange(1, order + 1)[:, None]


def reliability(name, order, n):
    """How the problems of random parameters end; a lattice's, an interval's and so on."""
    support = SUPPORTS[name]
    problem = Problem(support, moments(order))
    targets = expectations(problem, random_naturals(support, order, n, np.random.default_rng(order)))[1]
    start = time.perf_counter()
    found = solve(problem, targets)
    took = time.perf_counter() - start
    return {
        "support": name,
        "moments": order,
        "problems": n,
        "share solved": float((found.status == Status.SOLVED).mean()),
        "statuses": {status.name: count for status, count in found.counts.items() if count},
        "largest residual of the solved": float(found.residual[found.status == Status.SOLVED].max()),
        "smallest mean": float(np.abs(targets[0]).min()),
        "seconds": took,
    }


def any_functions(n):
    """Functions that are not powers: seconds for solving, for the normalisers, and the largest error."""
    rng = np.random.default_rng(0)
    shape, scale = 10 ** rng.uniform(np.log10(0.5), np.log10(50), n), 10 ** rng.uniform(-2, 3, n)
    angle, strength = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 20, n)
    cases = {
        "x, log x: gamma, shapes 0.5 to 50": (
            Problem(Support(0.0, open_low=True), (Power(1), LogAbove())),
            np.stack([-1 / scale, shape - 1]),
        ),
        "log x, log(1 - x): beta, 0.1 to 100": (
            Problem(Support(0.0, 1.0, open_low=True, open_high=True), (LogAbove(), LogBelow())),
            10 ** rng.uniform(-1, 2, size=(2, n)) - 1,
        ),
        "cos x, sin x: von Mises": (
            Problem(Support(0.0, 2 * np.pi), (Cosine(), Sine())),
            strength * np.stack([np.cos(angle), np.sin(angle)]),
        ),
        "|x - 1|, x, x^2 on the line": (
            Problem(Support(), (Deviation(1.0), Power(1), Power(2))),
            np.stack([rng.normal(size=n), rng.normal(size=n), -(10 ** rng.uniform(-3, 2, n))]),
        ),
    }
    rows = []
    for name, (problem, natural) in cases.items():
        targets = expectations(problem, natural)[1]
        if name.startswith("x, log x"):
            targets = Gamma().mean(natural)
        solve(problem, targets[:, :10])
        took, found = best(lambda p=problem, t=targets: solve(p, t), 1)
        normalisers, _ = best(lambda p=problem, t=natural: expectations(p, t), 1)
        # Parameters are told by the means only where no function is nearly a combination of the others.
        error = np.abs(found.natural - natural) / np.maximum(np.abs(natural), 1.0)
        # Panels of each problem's own, not those it was solved on.
        some = slice(0, 500)
        apart = integrals(problem, found.natural[:, some])
        moments_error = np.abs(apart.mean - targets[:, some]) / apart.magnitude
        rows.append(
            {
                "functions": name,
                "problems": n,
                "seconds": took,
                "seconds of the normalisers": normalisers,
                "share solved": float((found.status == Status.SOLVED).mean()),
                "evaluations per problem": float(found.n_iter.mean()),
                "median and largest error of a parameter": [float(np.median(error)), float(error.max())],
                "largest error of a mean, of 500 integrated anew": float(moments_error.max()),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=2_000_000)
    parser.add_argument("--random", type=int, default=100_000)
    parser.add_argument("--general", type=int, default=20_000)
    options = parser.parse_args()
    fast = speed(options.problems)
    print(f"{fast['problems']:,} problems of 4 moments on 64 nodes: {fast['seconds']:.1f} s, ", end="")
    print(f"{fast['ratio']:.2f} times their bare exponentials", flush=True)
    general = any_functions(options.general)
    for row in general:
        print(
            f"{row['problems']:,} of {row['functions']}: {row['seconds']:.1f} s, "
            f"{row['share solved']:.4%} solved",
            flush=True,
        )
    rows = []
    for name in SUPPORTS:
        for order in (1, 2, 3, 4):
            if name == "line" and order % 2:
                continue
            row = reliability(name, order, options.random)
            rows.append(row)
            print(
                f"{name:10} l={order} {row['share solved']:.4%} solved in {row['seconds']:.1f} s ",
                row["statuses"],
                flush=True,
            )
    record = {
        "command": "make bench-dual",
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "versions": {p: version(p) for p in ("maxdisc", "numpy", "numba")},
        "tolerance": TOLERANCE,
        "speed": fast,
        "any functions": general,
        "reliability": rows,
    }
    (HERE / "results" / "dual.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
