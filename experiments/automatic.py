"""The automatic model: nothing is set by hand, all is chosen within the training rows."""

from __future__ import annotations

from typing import Any

from experiments.methods import Codes, Matrix, Outcome, fitted_outcome


def automatic(X: Matrix, y: Codes, held: Matrix, seed: int) -> Outcome:
    """The library's search with its defaults, on counts of words or on a table of numbers."""
    from maxdisc import MaxDiscSearchCV

    model = MaxDiscSearchCV(random_state=seed).fit(X, y)
    return fitted_outcome(model, held, chosen_by(model))


def chosen_by(model: Any) -> dict[str, Any]:
    """The best parameters of a fitted search, and how many features it kept, as a record can hold them."""
    chosen = {name: _plain(value) for name, value in getattr(model, "best_params_", {}).items()}
    inside = getattr(model, "best_classifier_", model)
    if hasattr(inside, "n_selected_"):
        chosen["K"] = int(inside.n_selected_)
    return chosen


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
