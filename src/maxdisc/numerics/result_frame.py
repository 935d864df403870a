"""Result tables are pandas frames; pandas is imported when the first of them is asked for."""

from __future__ import annotations

from typing import Any


def frame_class() -> Any:
    """Return pandas' ``DataFrame``; raise ``ImportError`` without pandas."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise ImportError("a table of results needs pandas: pip install pandas") from None
    return DataFrame
