"""Rows from files: CSV, Excel, Parquet, JSON Lines, svmlight, h5ad, text.

Everything is read in batches of bounded memory that know which rows of which file they hold, so that whatever
is wrong with a value is said with its place.
"""

from __future__ import annotations

from maxdisc.numerics.installation import pip_line

try:
    import pyarrow  # noqa: F401  # asked for once, here, with the way out
except ImportError as error:
    raise ImportError(f"reading files needs pyarrow: {pip_line('cli')}") from error

from maxdisc.files.batches import Batch, joined, recut, table_of
from maxdisc.files.dataset import Dataset
from maxdisc.files.places import FORMATS, SourceError
from maxdisc.files.readings import Reading, sources, summary, with_decimal
from maxdisc.files.roles import Roles, guess_roles, matching, nearest
from maxdisc.files.sinks import format_to_write, open_sink

__all__ = [
    "FORMATS",
    "Batch",
    "Dataset",
    "Reading",
    "Roles",
    "SourceError",
    "format_to_write",
    "guess_roles",
    "joined",
    "matching",
    "nearest",
    "open_sink",
    "recut",
    "sources",
    "summary",
    "table_of",
    "with_decimal",
]
