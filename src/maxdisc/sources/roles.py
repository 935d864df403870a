"""Which column is the text, which the label, which are features: guessed, or as asked."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from maxdisc.sources.batches import Batch
from maxdisc.sources.cells import as_text, is_written, parsed, share_of_numbers
from maxdisc.sources.places import SourceError

LABEL_NAMES = ("label", "labels", "class", "target", "topic", "category", "y")
ID_NAMES = ("id", "index", "idx", "row", "rowid", "row_id", "unnamed: 0", "column 1")
#: With so many numbers among its values a column is meant to be of numbers.
MOSTLY = 0.9
_FEW = 50
_LISTED = 8
_UNUSED = {
    "text": "it holds text",
    "empty": "it holds nothing in the first rows",
    "other": "it holds no numbers",
}
# Some words in a row of Thai, Lao, Burmese, Khmer, Japanese or Chinese, which put no space between them.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{5}")


@dataclass(frozen=True)
class Column:
    """What the first rows tell about a column.

    Parameters
    ----------
    name : str
        Its name.
    kind : {"number", "text", "empty", "other"}
        What can be made of it.
    n_distinct : int
        Distinct values among the first rows.
    n_rows : int
        How many rows those are.
    length : float
        Mean number of characters.
    spaced : bool
        Whether most of the values have a space, or are in a script that does without.
    whole : bool
        Whether all its numbers are integers.
    """

    name: str
    kind: str
    n_distinct: int
    n_rows: int
    length: float = 0.0
    spaced: bool = False
    whole: bool = False

    @property
    def few(self) -> bool:
        """Few enough distinct values for a label."""
        few = 2 <= self.n_distinct <= _FEW and 2 * self.n_distinct <= max(4, self.n_rows)
        return few and (self.kind == "text" or self.whole)

    @property
    def identifies(self) -> bool:
        """Whether it only numbers the rows, as an identifier does, or the index that pandas stores."""
        named = self.name.lower() in ID_NAMES or self.name.startswith("__index_level_")
        return named and self.whole and self.n_distinct == self.n_rows


@dataclass(frozen=True)
class Roles:
    """What each column is for.

    Parameters
    ----------
    label : str
        The column of labels.
    text : str or None
        The column of documents; None for a table of numbers.
    features : tuple of str
        The columns of numbers; empty for documents.
    guessed : tuple of str
        Those of "label", "text" and "features" that nobody asked for.
    left_out : tuple of (str, str)
        Columns that are not used, and why.
    """

    label: str
    text: str | None
    features: tuple[str, ...]
    guessed: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return [self.label, *([self.text] if self.text else self.features)]


def guess_roles(
    first: Batch,
    label: str | None = None,
    text: str | None = None,
    features: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Roles:
    """Settle the roles of the columns from the first rows and what was asked for.

    Parameters
    ----------
    first : Batch
        The first rows, with all columns.
    label, text : str, optional
        Columns asked for.
    features, exclude : sequence of str
        Names, comma-separated lists and globs of columns to use and to leave out.

    Returns
    -------
    Roles
        Of the columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from maxdisc.sources import Batch, guess_roles
    >>> table = pa.table({"id": [1, 2, 3, 4], "size": [3, 1, 4, 1], "kind": ["a", "b", "a", "b"]})
    >>> roles = guess_roles(Batch(table, "t.parquet", 1))
    >>> roles.label, roles.features, roles.left_out
    ('kind', ('size',), (('id', 'it numbers the rows'),))
    """
    names = first.table.column_names
    for asked in filter(None, (label, text)):
        if asked not in names:
            raise SourceError(f"{first.source} has no column {asked!r}{nearest(asked, names)}")
    if text is not None and features:
        raise SourceError("a model is of text or of a table: give --text or --features, not both.")
    # By position: a name may come twice.
    columns = [described(first, i, name) for i, name in enumerate(names)]
    excluded = set(matching(exclude, names, first.source))
    open_to_guess = [c for c in columns if c.name not in excluded and c.name != label]
    guessed = []
    if text is None and not features and first.matrix is None:
        text = _guess_text(open_to_guess)
        guessed += ["text"] if text else []
    if label is None:
        label = _guess_label([c for c in open_to_guess if c.name != text], first.source, names)
        guessed.append("label")
    if text is not None or first.matrix is not None:
        return Roles(label, text, (), tuple(guessed))
    wanted = matching(features, names, first.source)
    used, left_out = _features([c for c in columns if c.name != label and c.name not in excluded], wanted)
    if not used:
        raise SourceError(
            f"{first.source} has no column of numbers beside the label {label!r}: "
            "for documents say --text, for features --features."
        )
    if not features:
        guessed.append("features")
    return Roles(label, None, tuple(used), tuple(guessed), tuple(left_out))


def described(batch: Batch, position: int, name: str) -> Column:
    """What the rows of a batch tell about one of its columns."""
    array = batch.table.column(position)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if pa.types.is_null(kind):
        return Column(name, "empty", 0, len(array))
    if is_written(kind):
        text = as_text(array, name, batch.where)
        values = parsed(text)
        if values is None and share_of_numbers(text) >= MOSTLY:
            # Better to be told of the few that are wrong than to lose the column.
            return Column(name, "number", 0, len(array))
        if values is None:
            words = [w for w in text.to_pylist() if w]
            return Column(
                name,
                "text",
                len(set(words)),
                len(array),
                float(np.mean([len(w) for w in words])),
                sum(" " in w.strip() or bool(_UNSPACED.search(w)) for w in words) > len(words) / 2,
            )
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        values = (
            array.cast(pa.float64(), safe=False) if not pa.types.is_boolean(kind) else array.cast(pa.uint8())
        )
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        values = array.cast(pa.float64(), safe=False)
    else:
        return Column(name, "other", 0, len(array))
    there = np.asarray(values.drop_null(), dtype=np.float64)
    if np.isnan(there).all():
        return Column(name, "empty", 0, len(array))
    with np.errstate(invalid="ignore"):
        whole = bool(len(there)) and bool((there == np.rint(there)).all())
    return Column(name, "number", len(np.unique(there)), len(array), whole=whole)


def _guess_text(columns: Sequence[Column]) -> str | None:
    texts = [c for c in columns if c.kind == "text" and c.spaced and c.length >= 12 and not c.few]
    if not texts:
        # Repeated phrases are categories where there are numbers beside them, and else documents after all.
        least = 30 if any(c.kind == "number" and not c.identifies for c in columns) else 0
        texts = [c for c in columns if c.kind == "text" and c.spaced and c.length >= least]
    return max(texts, key=lambda c: c.length).name if texts else None


def _guess_label(columns: Sequence[Column], source: str, names: Sequence[str]) -> str:
    for wanted in LABEL_NAMES:
        for column in columns:
            if column.name.lower() == wanted:
                return column.name
    for column in reversed(columns):
        if column.few:
            return column.name
    raise SourceError(
        f"cannot tell which column of {source} holds the labels: say --label COL ({_listed(names)})."
    )


def _features(columns: Sequence[Column], wanted: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    if wanted:
        return [c.name for c in columns if c.name in set(wanted)], []
    used, left_out = [], []
    for column in columns:
        if column.identifies:
            left_out.append((column.name, "it numbers the rows"))
        elif column.kind == "number":
            used.append(column.name)
        else:
            left_out.append((column.name, _UNUSED[column.kind]))
    return used, left_out


def matching(patterns: Sequence[str], names: Sequence[str], source: str) -> list[str]:
    """The columns that names, comma-separated lists and globs pick, in the order of the data.

    Examples
    --------
    >>> from maxdisc.sources import matching
    >>> matching(["gene_*,age"], ["age", "gene_1", "sex", "gene_2"], "t.csv")
    ['age', 'gene_1', 'gene_2']
    """
    known, found = set(names), set()
    for pattern in patterns:
        for part in [pattern] if pattern in known else [p.strip() for p in pattern.split(",") if p.strip()]:
            hits = {part} & known or {name for name in known if fnmatch.fnmatchcase(name, part)}
            if not hits:
                raise SourceError(f"{source} has no column {part!r}{nearest(part, names)}")
            found |= hits
    return [name for name in dict.fromkeys(names) if name in found]


def nearest(name: str, names: Sequence[str]) -> str:
    """How a message ends: with the name that was probably meant, or those there are.

    Examples
    --------
    >>> from maxdisc.sources import nearest
    >>> nearest("topci", ["body", "topic"])
    ": did you mean 'topic'?"
    """
    lower = {n.lower(): n for n in names}
    close = difflib.get_close_matches(name.lower(), lower, n=1)
    return f": did you mean {lower[close[0]]!r}?" if close else f" ({_listed(names)})."


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_LISTED])
    return f"it has {shown}" + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
