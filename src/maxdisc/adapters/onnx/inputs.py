"""What a graph is given: one matrix, or a value for each column of a frame."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from skl2onnx.common.data_types import StringTensorType

from maxdisc.adapters.onnx.graph import Graph
from maxdisc.numerics.matrices import Integers, column_name


@dataclass(frozen=True, eq=False)
class Inputs:
    """Columns by position, however they are distributed over the inputs of an operator."""

    graph: Graph
    variables: list[Any]
    n_columns: int
    names: npt.NDArray[np.generic] | None = None  # (D,)

    @cached_property
    def _places(self) -> list[tuple[Any, int]]:
        """For each column the input that has it, and where."""
        widths = [_width(variable) for variable in self.variables]
        if len(widths) == 1 and widths[0] is None:
            widths = [self.n_columns]
        known = [1 if width is None else width for width in widths]
        if sum(known) != self.n_columns:
            raise ValueError(
                f"the model was fitted on {self.n_columns} columns, and the inputs of the graph have "
                f"{sum(known)}: give initial types, or rows, of the same columns."
            )
        return [
            (variable, offset)
            for variable, width in zip(self.variables, known, strict=True)
            for offset in range(width)
        ]

    @cached_property
    def _numeric(self) -> tuple[str, Integers]:
        """All numbers side by side as doubles, and where each column is among them; -1 for text."""
        parts, place, width = [], np.full(self.n_columns, -1), 0
        seen: set[int] = set()
        for column, (variable, _) in enumerate(self._places):
            if isinstance(variable.type, StringTensorType):
                continue
            place[column], width = width, width + 1
            if id(variable) not in seen:
                seen.add(id(variable))
                parts.append(self.graph.cast(variable.full_name))
        joined = parts[0] if len(parts) == 1 else self.graph.add("Concat", *parts, axis=1) if parts else ""
        return joined, place

    def numbers(self, at: Integers) -> str:
        """Return some columns as numbers, shape (n, k); NaN is a missing cell."""
        joined, place = self._numeric
        if (place[at] < 0).any():
            column = int(np.asarray(at)[np.argmax(place[at] < 0)])
            raise ValueError(
                f"{column_name(column, self.names)} held numbers when the model was fitted: its input to the "
                "graph must have numbers, not strings."
            )
        if np.array_equal(place[at], np.arange(int((place >= 0).sum()))):
            return joined
        return self.graph.columns(joined, place[at])

    def words(self, column: int) -> str:
        """Return a column of text, shape (n,)."""
        variable, offset = self._places[column]
        if not isinstance(variable.type, StringTensorType):
            raise ValueError(
                f"{column_name(column, self.names)} held categories when the model was fitted: its input to "
                "the graph must have strings, not numbers."
            )
        return self.graph.add("Gather", variable.full_name, self.graph.constant(offset), axis=1)


def _width(variable: Any) -> int | None:
    shape = variable.type.shape
    return shape[1] if len(shape) > 1 and isinstance(shape[1], int) else None
