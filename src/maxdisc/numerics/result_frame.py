"""A table for whichever library of frames is at hand, and for none."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

# How many rows are shown where all would be too many.
SHOWN = 10


class Frame(dict[str, npt.NDArray[Any]]):
    """Named columns of equal length, which pandas, polars and pyarrow can convert."""

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return min((len(column) for column in self.values()), default=0)

    def where(self, rows: Any) -> Frame:
        """Return some of the rows: a slice, their numbers, or one truth value for each."""
        return Frame({name: column[rows] for name, column in self.items()})

    def head(self, n: int = SHOWN) -> Frame:
        """Return the first ``n`` rows."""
        return self.where(slice(n))

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield one row after the other, as a dict of plain Python values."""
        for row in zip(*(column.tolist() for column in self.values()), strict=True):
            yield dict(zip(self, row, strict=True))

    def to_pandas(self) -> Any:
        """Convert to a pandas ``DataFrame``; raise ``ImportError`` without pandas."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise ImportError("a DataFrame needs pandas: pip install pandas") from None
        return pandas.DataFrame(dict(self))

    def __repr__(self) -> str:
        shown = self.head()
        columns = [[name, *map(_text, column.tolist())] for name, column in shown.items()]
        widths = [max(map(len, column)) for column in columns]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in zip(*columns, strict=True)
        ]
        dots = ["..."] if self.n_rows > shown.n_rows else []
        return "\n".join([*lines, *dots, f"[{self.n_rows} rows x {len(self)} columns]"])


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
