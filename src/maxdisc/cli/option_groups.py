"""Groups of options: a command has an option for each field of its parameters that are dataclasses."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter
from typing import Any, TypeVar, get_type_hints

R = TypeVar("R")


def flatten_groups(function: Callable[..., R]) -> Callable[..., R]:
    """Wrap a command whose parameters hold groups of options, so that Typer sees each option by itself."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            parameters += _options(groups[name])
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @functools.wraps(function)
    def flat(**values: Any) -> R:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        return function(**values)

    # Typer reads both.
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions may have one
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


def _options(group: Any) -> Iterator[Parameter]:
    """Yield the fields of a group as parameters."""
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = Parameter.empty if field.default is MISSING else field.default
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name])
