"""The convex dual: natural parameters of maximum-entropy densities under the means of any functions.

Among all densities whose statistics have the means ``mu``, the one of largest entropy is ``exp(theta .
phi(x))`` up to its normaliser, with the ``theta`` that minimises ``log Z(theta) - theta . mu``. That
function is convex, its gradient is the error of the moments, and its Hessian their covariance. All problems
are solved at once.

Integrals are adaptive, for each problem by itself: panels of a Gauss rule are halved until the highest
coefficients of the integrand vanish, in a coordinate that is graded towards the ends of the support. Sums
over lattices use the Gauss rule of the counting measure, which is exact for short blocks. Functions that
are not powers are evaluated once, on panels that all problems share.
"""

from maxdisc.families.dual.attempts import Solver
from maxdisc.families.dual.densities import draw, expectations, integrals, known_mean, nearest_point
from maxdisc.families.dual.kernel_arguments import legendre_table, solve_on_nodes
from maxdisc.families.dual.problem import Problem
from maxdisc.families.dual.regularisation import SHARES
from maxdisc.families.dual.solver import solve
from maxdisc.families.dual.status import TOLERANCE, Solution, Status

__all__ = [
    "SHARES",
    "TOLERANCE",
    "Problem",
    "Solution",
    "Solver",
    "Status",
    "draw",
    "expectations",
    "integrals",
    "known_mean",
    "legendre_table",
    "nearest_point",
    "solve",
    "solve_on_nodes",
]
