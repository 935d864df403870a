"""What is compared: for every table a registry of methods, from a name to a function.

A method is given training rows and their classes, held-out rows and a seed; all that it leaves open it
chooses within the training rows. It returns an :class:`Outcome`. To add one, write the function and put it
into the registry with :func:`method`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Matrix = Any  # dense, or a sparse matrix of counts
Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Outcome:
    """Classes of held-out rows, their probabilities if the method has any, and what it chose."""

    predicted: Codes
    probabilities: npt.NDArray[np.float64] | None = None
    chosen: dict[str, Any] = field(default_factory=dict)


Function = Callable[..., Any]


class Method(NamedTuple):
    """A function, the name it has in tables, and whether it is of this library."""

    function: Function
    title: str
    ours: bool
    quick: bool


#: By kind of table, then by name.
METHODS: dict[str, dict[str, Method]] = defaultdict(dict)


def method(
    kind: str, name: str, title: str, *, ours: bool = False, quick: bool = True
) -> Callable[[Function], Function]:
    """Put a function into the registry; ``quick`` says whether the short version of the tables has it."""

    def register(function: Function) -> Function:
        METHODS[kind][name] = Method(function, title, ours, quick)
        return function

    return register


def fitted_outcome(model: Any, held: Matrix, chosen: dict[str, Any] | None = None) -> Outcome:
    """The outcome of a fitted estimator; its classes are codes."""
    if not hasattr(model, "predict_proba"):
        return Outcome(model.predict(held), None, chosen or {})
    probabilities = model.predict_proba(held)
    return Outcome(model.classes_[probabilities.argmax(axis=1)], probabilities, chosen or {})
