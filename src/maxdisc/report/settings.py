"""Settings of a model as text."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import numpy as np

from maxdisc.calibration.evidence import Evidence
from maxdisc.inspection.model_view import ModelView

_LONGEST = 120


def settings_of(fitted: ModelView) -> dict[str, str]:
    """Return the choices of the fit, and the parameters of every step."""
    classifier = fitted.classifier
    settings = {
        "family of the densities": of_families(fitted.family_counts),
        "features kept": f"{classifier.n_selected_:,} of {classifier.n_features_in_:,}",
        "smoothing used": f"{classifier.smoothing_.amount:g}, target {classifier.smoothing_.target}",
    }
    if isinstance(classifier.evidence_, Evidence):
        settings["evidence used"] = _weighed(classifier.evidence_)
    if classifier.joint_ is not None:
        settings["joint densities"] = repr(classifier.joint_)
    steps = [] if fitted.before is None else fitted.before.steps
    for name, step in [*steps, ("classifier", classifier)]:
        if hasattr(step, "get_params"):
            settings |= {f"{name}: {key}": told(value) for key, value in step.get_params(deep=False).items()}
    return settings


def of_families(counts: dict[str, int]) -> str:
    """Return the family of all features, or the number of features of each."""
    return (
        next(iter(counts)) if len(counts) == 1 else ", ".join(f"{n:,} {name}" for name, n in counts.items())
    )


def _weighed(evidence: Evidence) -> str:
    """Return the weights of the bands of features, and how many features are corrected."""
    corrected = 0 if evidence.columns is None else len(evidence.columns)
    bands = ", ".join(
        f"{weight:.3g} up to {edge:,}"
        for weight, edge in zip(evidence.weights.tolist(), evidence.edges.tolist(), strict=True)
    )
    return f"weights of features, best first: {bands}" + (f"; {corrected:,} corrected" if corrected else "")


def told(value: Any) -> str:
    """Format a parameter identically in every run: no memory addresses, no long arrays."""
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    words = repr(value)
    if len(words) <= _LONGEST and " at 0x" not in words and "\n" not in words:
        return words
    size = f" of {len(value):,}" if hasattr(value, "__len__") else ""
    return f"a {'ndarray' if isinstance(value, np.ndarray) else type(value).__name__}{size}"


def versions() -> dict[str, str]:
    """Return the versions of all software that the numbers depend on."""
    packages = ("maxdisc", "numpy", "scipy", "scikit-learn")
    return {**{name: version(name) for name in packages}, "Python": platform.python_version()}
