"""What an automatic model chose, as plain values that a record can hold."""

from __future__ import annotations

from typing import Any


def chosen_by(model: Any) -> dict[str, Any]:
    """The best parameters of a fitted search, and how many features it kept."""
    chosen = {name: _plain(value) for name, value in getattr(model, "best_params_", {}).items()}
    inside = getattr(model, "best_estimator_", model)
    if hasattr(inside, "n_selected_"):
        chosen["K"] = int(inside.n_selected_)
    return chosen


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
