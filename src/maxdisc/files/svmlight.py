"""svmlight and libsvm files: a label, then ``index:value`` for each cell that is not zero."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from maxdisc.files.batches import Opened
from maxdisc.files.byte_streams import Stream, decoded, line_blocks
from maxdisc.files.places import SourceError
from maxdisc.numerics.matrices import Matrix

LABEL = "label"
_CELL = re.compile(rb"(qid|\d+):[-+]?(\d+\.?\d*|\.\d+|inf|nan)([eE][-+]?\d+)?", re.IGNORECASE)


def open_svmlight(stream: Stream) -> Opened:
    """Begin to read rows; labels come as they are written, and index i is column i.

    So names need no convention: where indices begin at 1, column 0 is empty and says nothing.
    """
    return Opened([LABEL], _tables(stream))


def _tables(stream: Stream) -> Iterator[tuple[pa.Table, Matrix]]:
    first_row = 1
    for lines in line_blocks(stream):
        # The label ends at any white space: many programs write tabs.
        split = [line.split(b"#", 1)[0].split(None, 1) for line in lines]
        kept = [(parts[0], b"".join(parts[1:])) for parts in split if parts]
        if not kept:
            continue
        labels = [
            decoded(label, f"{stream.name} row {row}") for row, (label, _) in enumerate(kept, first_row)
        ]
        matrix = _matrix([cells for _, cells in kept], stream.name, first_row)
        yield pa.table({LABEL: pa.array(labels, pa.string())}), matrix
        first_row += len(kept)


def _matrix(cells: list[bytes], name: str, first_row: int) -> Matrix:
    # Late: its package takes longer to import than most files to read.
    from sklearn.datasets import load_svmlight_file

    text = b"\n".join(b"0 " + row for row in cells)
    try:
        X, _ = load_svmlight_file(io.BytesIO(text), zero_based=True)
    except (ValueError, OverflowError) as error:
        raise _explained(cells, name, first_row, error) from None
    return sp.csr_array(X, dtype=np.float64)


def _explained(cells: list[bytes], name: str, first_row: int, error: Exception) -> SourceError:
    for row, line in enumerate(cells, first_row):
        for cell in line.split():
            if not _CELL.fullmatch(cell):
                shown = cell[:40].decode("utf-8", "replace")
                return SourceError(f"{name} row {row}: {shown!r} is not index:value.")
        indices = [int(cell.split(b":")[0]) for cell in line.split() if not cell.lower().startswith(b"qid")]
        if any(b <= a for a, b in pairwise(indices)):
            return SourceError(f"{name} row {row}: indices must increase from left to right.")
        if indices and indices[-1] > np.iinfo(np.int32).max:
            return SourceError(f"{name} row {row}: index {indices[-1]} is too large.")
    return SourceError(f"{name} from row {first_row}: {' '.join(str(error).split())}")
