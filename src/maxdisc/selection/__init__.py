"""How many features to select, by models of all folds but one."""

from __future__ import annotations

from maxdisc.selection.fold_models import SelectionPath

__all__ = ["SelectionPath"]
