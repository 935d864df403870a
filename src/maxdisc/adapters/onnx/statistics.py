"""The statistics of every family, and the ends of its support, as ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from maxdisc.adapters.onnx.graph import Graph
from maxdisc.families import (
    Bernoulli,
    Beta,
    Exponential,
    Family,
    Gamma,
    Gaussian,
    Geometric,
    Hurdle,
    NumericFamily,
    Poisson,
)
from maxdisc.families.functions import (
    Cosine,
    Deviation,
    Indicator,
    LogAbove,
    LogBelow,
    Power,
    Sine,
    Spline,
    Table,
)


def statistics(graph: Graph, family: Family, x: str) -> list[str]:
    """Return the L statistics of values (n, K) inside the support; raise ``ValueError`` if unsupported."""
    if isinstance(family, NumericFamily):
        return [_function(graph, family, function, x) for function in family.problem.functions]
    made = _STATISTICS.get(type(family))
    if made is None:
        raise ValueError(
            f"the family {family.name} ({type(family).__name__}) has no ONNX operators: export models of the "
            "library's own families, or predict with maxdisc itself."
        )
    return made(graph, x)


def outside(graph: Graph, family: Family, x: str, alone: bool = False) -> str:
    """Return where values (n, K) are none that the family takes; a missing cell is not.

    By the support ``alone``, or also where statistics could not be summed.
    """
    support, largest = family.support, np.inf if alone else family.largest
    low, high = max(support.low, -largest), min(support.high, largest)
    below = graph.add("LessOrEqual" if support.open_low else "Less", x, graph.constant(low))
    above = graph.add("GreaterOrEqual" if support.open_high else "Greater", x, graph.constant(high))
    conditions = [below, above]
    if family.integral:
        # Comparisons with NaN do not hold, so a missing cell is never outside.
        rest = graph.add("Abs", graph.add("Sub", x, graph.add("Round", x)))
        conditions.append(graph.add("Greater", rest, graph.constant(0.0)))
    return graph.either(conditions)


def _itself(_: Graph, x: str) -> list[str]:
    return [x]


def _gaussian(graph: Graph, x: str) -> list[str]:
    return [x, graph.add("Mul", x, x)]


def _gamma(graph: Graph, x: str) -> list[str]:
    return [x, graph.add("Log", x)]


def _beta(graph: Graph, x: str) -> list[str]:
    return [graph.add("Log", x), graph.log1p(graph.add("Neg", x))]


def _hurdle(graph: Graph, x: str) -> list[str]:
    return [graph.cast(graph.add("Greater", x, graph.constant(0.0))), x]


_STATISTICS: dict[type[Family], Callable[[Graph, str], list[str]]] = {
    Bernoulli: _itself,
    Beta: _beta,
    Exponential: _itself,
    Gamma: _gamma,
    Gaussian: _gaussian,
    Geometric: _itself,
    Hurdle: _hurdle,
    Poisson: _itself,
}


def _function(graph: Graph, family: NumericFamily, function: Any, x: str) -> str:
    made = _FUNCTIONS.get(type(function))
    if made is None:
        called = getattr(function, "__name__", None) or repr(function)
        raise ValueError(
            f"the function {called} of the {family.name} family has no ONNX operators: use functions of "
            "maxdisc.families.functions, or predict with maxdisc itself."
        )
    return made(graph, function, x)


def _power(graph: Graph, function: Power, x: str) -> str:
    result = x
    for _ in range(function.order - 1):
        result = graph.add("Mul", result, x)
    return result


def _log_above(graph: Graph, function: LogAbove, x: str) -> str:
    return graph.add("Log", graph.less(x, function.point))


def _log_below(graph: Graph, function: LogBelow, x: str) -> str:
    if function.point == 1.0:
        return graph.log1p(graph.add("Neg", x))
    return graph.add("Log", graph.add("Sub", graph.constant(function.point), x))


def _deviation(graph: Graph, function: Deviation, x: str) -> str:
    return graph.add("Abs", graph.less(x, function.point))


def _indicator(graph: Graph, function: Indicator, x: str) -> str:
    above = graph.add("GreaterOrEqual", x, graph.constant(function.low))
    return graph.cast(graph.add("And", above, graph.add("Less", x, graph.constant(function.high))))


def _angle(graph: Graph, function: Cosine | Sine, x: str) -> str:
    return graph.add("Mul", graph.constant(2 * np.pi * function.order / function.period), x)


def _cosine(graph: Graph, function: Cosine, x: str) -> str:
    return graph.add("Cos", _angle(graph, function, x))


def _sine(graph: Graph, function: Sine, x: str) -> str:
    return graph.add("Sin", _angle(graph, function, x))


def _spline(graph: Graph, function: Spline, x: str) -> str:
    above = graph.add("Max", graph.less(x, function.knot), graph.constant(0.0))
    return graph.add("Pow", above, graph.constant(float(function.degree)))


def _table(graph: Graph, function: Table, x: str) -> str:
    last = graph.constant(float(len(function.values) - 1))
    at = graph.add("Max", graph.add("Round", graph.less(x, function.low)), graph.constant(0.0))
    at = graph.cast(graph.add("Min", at, last), TensorProto.INT64)
    return graph.add("Gather", graph.constant(np.asarray(function.values, dtype=np.float64)), at, axis=0)


_FUNCTIONS: dict[type, Callable[[Graph, Any, str], str]] = {
    Cosine: _cosine,
    Deviation: _deviation,
    Indicator: _indicator,
    LogAbove: _log_above,
    LogBelow: _log_below,
    Power: _power,
    Sine: _sine,
    Spline: _spline,
    Table: _table,
}
