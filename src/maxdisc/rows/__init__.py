"""Sources of rows, folds, and the schema of columns."""

from __future__ import annotations

from maxdisc.rows.row_sources import BatchRows

__all__ = ["BatchRows"]
