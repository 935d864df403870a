"""ONNX nodes, written as calls: every function takes names of values and gives the name of its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, numpy_helper

#: What a result is called by, so that a runtime's message about a node says where it comes from.
PREFIX = "maxdisc"


@dataclass(frozen=True, eq=False)
class Graph:
    """Part of an ONNX graph that one estimator adds.

    All numbers are doubles, because evidence is a sum of many terms that nearly cancel.
    """

    scope: Any
    container: Any

    def constant(self, values: npt.ArrayLike) -> str:
        """Return numbers, indices or strings that are part of the model."""
        array = np.asarray(values)
        if array.dtype.kind in "OU":
            array = array.astype(object)
        elif array.dtype.kind in "iu":
            array = array.astype(np.int64)
        elif array.dtype.kind == "f":
            array = array.astype(np.float64)
        name = self.scope.get_unique_variable_name(f"{PREFIX}_constant")
        if array.dtype.kind == "O":
            flat = [text.encode() for text in array.ravel().tolist()]
            self.container.add_initializer(name, TensorProto.STRING, list(array.shape), flat)
        else:
            tensor = numpy_helper.from_array(array.copy(order="C"), name)
            self.container.add_initializer(name, tensor.data_type, list(array.shape), tensor)
        return name

    def add(
        self,
        kind: str,
        *inputs: str,
        result: str | None = None,
        domain: str = "",
        version: int | None = None,
        called: str = "",
        **attributes: Any,
    ) -> str:
        """Return a node of the kind given; its result gets a name of its own unless there is one."""
        if result is None:
            result = self.scope.get_unique_variable_name(f"{PREFIX}_{kind}")
        name = self.scope.get_unique_operator_name(called or f"{PREFIX}_{kind}")
        self.container.add_node(
            kind, list(inputs), [result], op_domain=domain, op_version=version, name=name, **attributes
        )
        return result

    def cast(self, value: str, kind: int = TensorProto.DOUBLE, result: str | None = None) -> str:
        """Return a value as numbers of another type."""
        return self.add("Cast", value, result=result, to=kind)

    def columns(self, value: str, at: npt.NDArray[np.integer[Any]]) -> str:
        """Return some columns of a matrix."""
        return self.add("Gather", value, self.constant(at), axis=1)

    def less(self, value: str, subtrahend: npt.ArrayLike) -> str:
        """Return what is left of a value; the value itself where nothing is taken from it."""
        return self.add("Sub", value, self.constant(subtrahend)) if np.any(subtrahend) else value

    def product(self, value: str, matrix: npt.NDArray[np.float64]) -> str:
        """Return a value (n, K) times numbers (K, C)."""
        return self.add("MatMul", value, self.constant(matrix))

    def total(self, terms: Sequence[str]) -> str:
        """Return the sum of values of one shape."""
        result = terms[0]
        for term in terms[1:]:
            result = self.add("Add", result, term)
        return result

    def either(self, conditions: Sequence[str]) -> str:
        """Return where one of several conditions holds."""
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.add("Or", result, condition)
        return result

    def any_of_row(self, condition: str, width: int) -> str:
        """Return the rows (n, 1) in which a condition (n, width) holds somewhere."""
        counts = self.product(self.cast(condition), np.ones((width, 1)))
        return self.add("Greater", counts, self.constant(0.0))

    def log1p(self, value: str) -> str:
        """``log(1 + value)``, for which there is no operator, to full precision near 0, too."""
        one = self.constant(1.0)
        above = self.add("Add", one, value)
        gained = self.add("Sub", above, one)
        nothing = self.add("Equal", gained, self.constant(0.0))
        divisor = self.add("Where", nothing, one, gained)
        exact = self.add("Mul", self.add("Log", above), self.add("Div", value, divisor))
        return self.add("Where", nothing, value, exact)
