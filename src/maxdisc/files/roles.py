"""Which column is the text, which the label, which are features: guessed, or as asked."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from maxdisc.files.batches import Batch
from maxdisc.files.cells import MISSING, are_truths, as_text, is_written, parsed, share_of_numbers
from maxdisc.files.places import SourceError

LABEL_NAMES = ("label", "labels", "class", "target", "topic", "category", "y")
ID_NAMES = ("id", "index", "idx", "row", "rowid", "row_id", "unnamed: 0", "column 1")
#: With so many numbers among its values a column is meant to be of numbers.
MOSTLY = 0.9
_FEW = 50
# Text of several words is taken for documents if it has so many characters on average: alone, ...
_PHRASE = 12
# ... and beside other features.
_DOCUMENT = 40
# What says that a value is missing is not longer than this, with some spaces around it.
_LONGEST = 20
_LISTED = 8
_UNUSED = {
    "text": "it holds text that hardly repeats",
    "empty": "it holds nothing in the first rows",
    "other": "it holds no numbers",
}
# Some words in a row of Thai, Lao, Burmese, Khmer, Japanese or Chinese, which put no space between them.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{5}")


@dataclass(frozen=True)
class Column:
    """Statistics of a column in the first rows."""

    name: str
    kind: str
    n_distinct: int
    n_rows: int
    length: float = 0.0
    spaced: bool = False
    whole: bool = False
    n_there: int = 0

    @property
    def is_category(self) -> bool:
        """Whether it is text of which a value comes twice on average: neither documents nor names."""
        return self.kind == "text" and 0 < 2 * self.n_distinct <= self.n_there

    @property
    def few(self) -> bool:
        """Few enough distinct values for a label."""
        few = 2 <= self.n_distinct <= _FEW and 2 * self.n_distinct <= max(4, self.n_rows)
        return few and (self.kind in ("text", "truth") or self.whole)

    @property
    def identifies(self) -> bool:
        """Whether it only numbers the rows, as an identifier does, or the index that pandas stores."""
        named = self.name.lower() in ID_NAMES or self.name.startswith("__index_level_")
        return named and self.whole and self.n_distinct == self.n_rows


@dataclass(frozen=True)
class Roles:
    """Role of each column: label, text or features, and the reasons for columns left out."""

    label: str
    text: str | None
    features: tuple[str, ...]
    guessed: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    categories: tuple[str, ...] = ()
    truths: tuple[str, ...] = ()

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
    categorical: Sequence[str] = (),
    words: bool = True,
) -> Roles:
    """Assign roles to the columns from the first rows and the options."""
    names = first.table.column_names
    for asked in filter(None, (label, text)):
        if asked not in names:
            raise SourceError(f"{first.source} has no column {asked!r}{nearest(asked, names)}")
    for flag, given in (("--features", features), ("--categorical", categorical)):
        if given and text is not None:
            raise SourceError(f"a model is of text or of a table: give --text or {flag}, not both.")
    # By position: a name may come twice.
    columns = [described(first, i, name) for i, name in enumerate(names)]
    excluded = set(matching(exclude, names, first.source))
    asked_words = set(matching(categorical, names, first.source)) - excluded - {label}
    open_to_guess = [c for c in columns if c.name not in excluded and c.name != label]
    guessed = []
    if text is None and not features and not categorical and first.matrix is None:
        text = _guess_text(open_to_guess, label is None)
        guessed += ["text"] if text else []
    if label is None:
        free = [c for c in open_to_guess if c.name != text and c.name not in asked_words]
        label = _guess_label(free, first.source, names)
        guessed.append("label")
    if text is not None or first.matrix is not None:
        return Roles(label, text, (), tuple(guessed))
    wanted = matching(features, names, first.source)
    open_to_use = [c for c in columns if c.name != label and c.name not in excluded]
    used, left_out = _features(open_to_use, wanted, asked_words, words)
    if not used:
        raise SourceError(
            f"{first.source} has no column of numbers{' or categories' if words else ''} beside the label "
            f"{label!r}: for documents say --text, for features --features."
        )
    if not features:
        guessed.append("features")
    kinds = {c.name: "text" if c.name in asked_words else c.kind for c in used if words}
    return Roles(
        label,
        None,
        tuple(c.name for c in used),
        tuple(guessed),
        tuple(left_out),
        tuple(name for name, kind in kinds.items() if kind == "text"),
        tuple(name for name, kind in kinds.items() if kind == "truth"),
    )


def described(batch: Batch, position: int, name: str) -> Column:
    """Return what the rows of a batch tell about one of its columns."""
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
                n_there=sum(len(w) > _LONGEST or w.strip().lower() not in MISSING for w in words),
            )
        if are_truths(text):
            kind = pa.bool_()
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
    told = "truth" if pa.types.is_boolean(kind) else "number"
    return Column(name, told, len(np.unique(there)), len(array), whole=whole)


def _guess_text(columns: Sequence[Column], label_is_open: bool) -> str | None:
    spaced = [c for c in columns if c.kind == "text" and c.spaced]
    numbers = sum(c.kind in ("number", "truth") and not c.identifies for c in columns)
    # One of the columns with few values may be the label.
    beside = numbers + sum(c.is_category for c in columns) - label_is_open
    # Beside the columns of a table, short text that does not repeat is names or addresses.
    least = _DOCUMENT if beside >= 2 else _PHRASE
    texts = [c for c in spaced if c.length >= least and not c.few and not c.is_category]
    if not texts and not numbers and beside <= 1:
        # Repeated phrases are categories where there are other features beside them, and else documents.
        texts = spaced
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


def _features(
    columns: Sequence[Column], wanted: Sequence[str], categorical: Collection[str], words: bool
) -> tuple[list[Column], list[tuple[str, str]]]:
    if wanted:
        return [c for c in columns if c.name in {*wanted, *categorical}], []
    used, left_out = [], []
    for column in columns:
        is_word = column.is_category and words
        if column.name in categorical:
            used.append(column)
        elif column.identifies:
            left_out.append((column.name, "it numbers the rows"))
        elif column.kind in ("number", "truth") or is_word:
            used.append(column)
        else:
            reason = "it holds text" if column.is_category else _UNUSED[column.kind]
            left_out.append((column.name, reason))
    return used, left_out


def matching(patterns: Sequence[str], names: Sequence[str], source: str) -> list[str]:
    """Return the columns that names, comma-separated lists and globs select, in the order of the data."""
    known, found = set(names), set()
    for pattern in patterns:
        for part in [pattern] if pattern in known else [p.strip() for p in pattern.split(",") if p.strip()]:
            hits = {part} & known or {name for name in known if fnmatch.fnmatchcase(name, part)}
            if not hits:
                raise SourceError(f"{source} has no column {part!r}{nearest(part, names)}")
            found |= hits
    return [name for name in dict.fromkeys(names) if name in found]


def nearest(name: str, names: Sequence[str]) -> str:
    """Return the end of an error message: the closest name, or the available ones."""
    lower = {n.lower(): n for n in names}
    close = difflib.get_close_matches(name.lower(), lower, n=1)
    return f": did you mean {lower[close[0]]!r}?" if close else f" ({_listed(names)})."


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_LISTED])
    return f"it has {shown}" + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
