"""L-BFGS on the dual, to check the other solvers."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from maxdisc.families.dual.iterative_scaling import Nodal, fixed_nodes, sums_on_nodes
from maxdisc.families.dual.newton import Dual
from maxdisc.families.dual.status import TOLERANCE
from maxdisc.numerics.matrices import Floats, Integers


def by_gradient(dual: Dual, theta: Floats, max_iter: int) -> tuple[Floats, Floats, Integers]:
    """L-BFGS on the sum of all duals, in statistics that are uncorrelated where a round begins."""
    theta, n_iter = theta.copy(), np.zeros(theta.shape[1], dtype=np.intp)
    everything = np.arange(theta.shape[1])
    for _ in range(12):
        covariance = dual.at(theta, everything)[2]
        values, vectors = np.linalg.eigh(covariance)
        root = vectors / np.sqrt(np.maximum(values, 1e-14 * values[:, -1:]))[:, None, :]
        nodes, begin = fixed_nodes(dual, theta), theta.copy()

        def objective(
            flat: Floats, begin: Floats = begin, root: Floats = root, nodes: Nodal = nodes
        ) -> tuple[float, Floats]:
            move = flat.reshape(begin.shape)
            now = begin + np.einsum("mij,jm->im", root, move)
            log_partition, mean = sums_on_nodes(nodes, now)
            error = mean - dual.targets
            value = log_partition - (now * dual.targets).sum(axis=0)
            return float(value.sum()), np.einsum("mij,im->jm", root, error).ravel()

        found = minimize(
            objective,
            np.zeros(theta.size),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter, "ftol": 0.0, "gtol": 1e-11, "maxcor": 30},
        )
        theta = begin + np.einsum("mij,jm->im", root, found.x.reshape(theta.shape))
        n_iter += found.nfev
        residual = dual.at(theta, everything)[3]
        if (residual <= TOLERANCE / 10).all():
            break
    return theta, residual, n_iter
