"""How far a ranking of mixed columns can be trusted: block by block, and together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, gamma

from maxdisc.columns import Block, Columns, MixedMoments
from maxdisc.frame import Frame
from maxdisc.matrices import Floats, Integers
from maxdisc.moments import ClassMoments
from maxdisc.nulls import LEAST
from maxdisc.significance import class_columns


def column_p_values(columns: Columns, of_block: Callable[[int, Block], Floats]) -> Floats:
    """P-values of the columns of a table from those of its blocks.

    Parameters
    ----------
    columns : Columns
        The blocks.
    of_block : callable
        From the place of a block, and the block, to a p-value for each of its columns.

    Returns
    -------
    ndarray of shape (D,)
        By Fisher's method where a column has several: whether a cell is missing and what it holds otherwise
        are independent if neither has to do with the class. NaN if one of them is not known.
    """
    twice, count = np.zeros(columns.n_columns), np.zeros(columns.n_columns)
    for place, block in enumerate(columns.blocks):
        at = block.columns[block.starts]
        twice[at] -= 2 * np.log(np.maximum(of_block(place, block), LEAST))
        count[at] += 1
    return np.asarray(np.where(count == 1, np.exp(-twice / 2), chi2.sf(twice, 2 * count)))


def level_p_values(block: Block, moments: ClassMoments) -> Floats:
    """P-values of categories, from how often each class has each level.

    Pearson's chi-square, and the gamma distribution that has the mean and the variance which it has over all
    ways to deal out the labels: with few rows, or rare levels, the chi-square distribution has neither.

    Parameters
    ----------
    block : Block
        Of levels.
    moments : ClassMoments
        Of the block.

    Returns
    -------
    ndarray of shape (n,)
        For each of its columns; 1 where there is one level, or one class, only.
    """
    counts = moments.sums[0]
    # Weighted rows count as their effective number.
    share = moments.n_rows / max(float(moments.weight.sum()), LEAST) if moments.n_rows else 1.0
    counts = counts * share

    def over(cells: Floats) -> Floats:
        return np.asarray(np.add.reduceat(cells, block.starts, axis=-1))

    of_level = counts.sum(axis=0)
    of_class = over(counts)
    n = np.maximum(of_class.sum(axis=0), LEAST)
    expected = of_class[:, block.group] * (of_level / n[block.group])
    seen = expected > 0
    square = over(np.where(seen, (counts - expected) ** 2 / np.where(seen, expected, 1.0), 0.0).sum(axis=0))
    n_levels, n_classes = over((of_level > 0).astype(np.float64)), (of_class > 0).sum(axis=0)
    inverse_levels = over(np.where(of_level > 0, 1 / np.where(of_level > 0, of_level, 1.0), 0.0))
    inverse_classes = np.where(of_class > 0, 1 / np.where(of_class > 0, of_class, 1.0), 0.0).sum(axis=0)
    told = (n_levels > 1) & (n_classes > 1) & (n > 3)
    n = np.where(told, n, 10.0)
    mean = n / (n - 1) * (n_levels - 1) * (n_classes - 1)
    # The variance over all deals: Haldane (1939), in the form of Heo and Gabriel (1998).
    a, b = (
        ((count - 1) * (n - count) / (n - 1), (n * inverse - count**2) / (n - 2))
        for count, inverse in ((n_levels, inverse_levels), (n_classes, inverse_classes))
    )
    variance = 2 * n / (n - 3) * (a[0] - a[1]) * (b[0] - b[1]) + n**2 / (n - 1) * a[1] * b[1]
    told &= variance > 0
    mean, variance = np.where(told, mean, 1.0), np.where(told, variance, 1.0)
    p = gamma.sf(square, mean**2 / variance, scale=variance / mean)
    return np.where(told, np.maximum(p, LEAST), 1.0)


def columns_of_classes(
    columns: Columns, moments: MixedMoments, wanted: Integers, classes: npt.NDArray[np.generic]
) -> Frame:
    """The family of each column, and what each class has of it; see ``class_columns``.

    Categories have no direction and no mean.
    """
    family = np.full(columns.n_columns, "", dtype=object)
    planes: dict[str, npt.NDArray[np.generic]] = {}
    for label in classes.tolist():
        planes[f"direction[{label}]"] = np.zeros(columns.n_columns, dtype=np.int8)
    for name in ("mean", "deviation"):
        planes |= {f"{name}[{label}]": np.full(columns.n_columns, np.nan) for label in classes.tolist()}
    # What a column is comes before whether it is missing, which is the last block.
    for block, part in reversed(list(zip(columns.blocks, moments.parts, strict=True))):
        family[block.columns] = block.family.name
        of_block = Frame() if block.has_levels else class_columns(block.family, part, classes)
        for name, plane in planes.items():
            plane[block.columns] = of_block.get(name, 0 if name.startswith("direction") else np.nan)
    return Frame({"family": family, **planes}).where(wanted)
