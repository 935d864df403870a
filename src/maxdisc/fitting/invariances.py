"""What the answers of an estimator depend on beside what its rows tell, as one of scikit-learn's tags."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from sklearn.utils import Tags

#: All exceptions to the laws of :func:`maxdisc.testing.check_invariances`, by name.
EXCEPTIONS = {
    "hashes": (
        "Folds of cv='hash', halves of Joint(search='greedy'), and samples of rows where there are more than "
        "a choice needs go by a hash of each row's values with their columns (samples: and its class): in "
        "other units, or with columns (samples: or classes) in another order, they are others."
    ),
    "solver": (
        "Conditional models are solved to a few digits, and where evidence is refined by 16,384 products of "
        "cells and classes or more to a gap of 3 % of their objective: sums in another order change "
        "probabilities that far."
    ),
    "penalty": "The penalty of DiscriminativeMaxEnt is in the units of X: standardise columns first.",
}


@dataclass(slots=True)
class InvarianceTags(Tags):  # type: ignore[misc]  # scikit-learn has no types
    """scikit-learn's tags, and the exceptions that an estimator makes to the laws, each in one sentence."""

    invariance_exceptions: dict[str, str] = field(default_factory=dict)


def with_exceptions(tags: Tags, *names: str) -> InvarianceTags:
    """Return the tags with some of the exceptions."""
    given: dict[str, Any] = {one.name: getattr(tags, one.name) for one in fields(tags)}
    return InvarianceTags(**given, invariance_exceptions={name: EXCEPTIONS[name] for name in names})
