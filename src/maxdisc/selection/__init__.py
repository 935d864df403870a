"""Number of features, by cross-validation."""

from __future__ import annotations

from maxdisc.selection.fold_models import SelectionPath

__all__ = ["SelectionPath"]
