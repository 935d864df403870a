"""Roles of columns: text, label and features, guessed or as requested."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from maxdisc.files.batches import Batch
from maxdisc.files.cells import MISSING, MOSTLY, are_truths, as_text, is_written, parsed, share_of_numbers
from maxdisc.files.places import SourceError
from maxdisc.files.reading_guesses import guess_readings
from maxdisc.files.readings import TEXT, UNCLEAR, Reading

LABEL_NAMES = ("label", "labels", "class", "target", "topic", "category", "y")
ID_NAMES = ("id", "index", "idx", "row", "rowid", "row_id", "unnamed: 0", "column 1")
_FEW = 50
# Text of several words is taken for documents if it has at least this many characters on average: alone, ...
_PHRASE = 12
# ... and with other features.
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
    #: The column of the file, where a date is taken apart; and why it cannot be read, of an unclear one.
    of: str = ""
    reason: str = ""

    @property
    def source(self) -> str:
        """The column of the file that it is, or comes from."""
        return self.of or self.name

    @property
    def is_category(self) -> bool:
        """Whether it is text of which a value comes twice on average: neither documents nor names."""
        return self.kind == "text" and 0 < 2 * self.n_distinct <= self.n_there

    @property
    def few(self) -> bool:
        """Few enough distinct values for a label."""
        if self.of:
            return False
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
    #: How some of the features are read, and a text that several columns hold.
    readings: Mapping[str, Reading] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return [self.label, *([self.text] if self.text else self.features)]


def guess_roles(
    first: Batch,
    label: str | None = None,
    text: str | Sequence[str] | None = None,
    features: Sequence[str] = (),
    exclude: Sequence[str] = (),
    categorical: Sequence[str] = (),
    words: bool = True,
    decimal: str | None = None,
    dates: str | None = None,
) -> Roles:
    """Assign roles to the columns from the first rows and the options."""
    names = first.table.column_names
    texts = [text] if isinstance(text, str) else list(dict.fromkeys(text or ()))
    for asked in filter(None, (label, *texts)):
        if asked not in names:
            raise SourceError(f"{first.source} has no column {asked!r}{nearest(asked, names)}")
    for flag, given in (("--features", features), ("--categorical", categorical)):
        if given and texts:
            raise SourceError(
                f"a model is of text or of a table, it cannot take both: give --text or {flag}, not both."
            )
    text = " + ".join(texts) or None
    asked_words = set(matching(categorical, names, first.source)) - {label}
    as_written = {*texts, *asked_words, *([label] if label else [])}
    readings = guess_readings(first.table, first.where, as_written, decimal, dates)
    # By position: a name may come twice.
    columns = [c for i, name in enumerate(names) for c in described(first, i, name, readings)]
    known = list(dict.fromkeys([*names, *(c.name for c in columns)]))
    excluded = set(matching(exclude, known, first.source))
    asked_words -= excluded
    open_to_use = [c for c in columns if not {c.name, c.source} & excluded and c.source != label]
    guessed = []
    if text is None and not features and not categorical and first.matrix is None:
        text = _guess_text(open_to_use, label is None)
        guessed += ["text"] if text else []
    if label is None:
        free = [c for c in open_to_use if c.name != text and c.name not in asked_words]
        label = _guess_label(free, first.source, names)
        guessed.append("label")
        open_to_use = [c for c in open_to_use if c.source != label]
    if text is not None or first.matrix is not None:
        read = {text: Reading(tuple(texts), TEXT)} if text and len(texts) > 1 else {}
        beside = _beside_text(open_to_use, text, words) if "text" in guessed else ()
        return Roles(label, text, (), tuple(guessed), beside, readings=read)
    wanted = matching(features, known, first.source)
    used, left_out = _features(open_to_use, wanted, asked_words, words)
    if not used:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out[:2])
        raise SourceError(
            f"{first.source} has no column of numbers{' or categories' if words else ''} beside the label "
            f"{label!r}{f' ({why})' if why else ''}: for documents say --text, for features --features."
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
        {c.name: readings[c.name] for c in used if c.name in readings},
    )


def _beside_text(columns: Sequence[Column], text: str | None, words: bool) -> tuple[tuple[str, str], ...]:
    """Return the columns that would be features if there were no text."""
    used, _ = _features([c for c in columns if c.name != text], (), (), words)
    reason = "a model is of text or of a table, not yet of both"
    return tuple((name, reason) for name in dict.fromkeys(c.source for c in used))


def described(
    batch: Batch, position: int, name: str, readings: Mapping[str, Reading] | None = None
) -> list[Column]:
    """Return the statistics of a column of a batch, or of the features made from it."""
    made = {feature: r for feature, r in (readings or {}).items() if r.columns == (name,)}
    if not made:
        return [_described(batch, position, name)]
    out = []
    for feature, reading in made.items():
        if reading.what == UNCLEAR:
            out.append(Column(name, UNCLEAR, 0, len(batch), reason=reading.notation))
            continue
        values = reading.numbers(batch.table.column(position), batch.where)
        out.append(_of_numbers(feature, "number", values, of=name if reading.is_date else ""))
    return out


def _described(batch: Batch, position: int, name: str) -> Column:
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
    return _of_numbers(name, "truth" if pa.types.is_boolean(kind) else "number", values)


def _of_numbers(name: str, kind: str, values: pa.Array, of: str = "") -> Column:
    there = np.asarray(values.drop_null(), dtype=np.float64)
    if np.isnan(there).all():
        return Column(name, "empty", 0, len(values), of=of)
    with np.errstate(invalid="ignore"):
        whole = bool(len(there)) and bool((there == np.rint(there)).all())
    return Column(name, kind, len(np.unique(there)), len(values), whole=whole, of=of)


def _guess_text(columns: Sequence[Column], label_is_open: bool) -> str | None:
    spaced = [c for c in columns if c.kind == "text" and c.spaced]
    numbers = len({c.source for c in columns if c.kind in ("number", "truth") and not c.identifies})
    # One of the columns with few values may be the label.
    beside = numbers + sum(c.is_category for c in columns) - label_is_open
    # With other columns, short text that does not repeat is names or addresses.
    least = _DOCUMENT if beside >= 2 else _PHRASE
    texts = [c for c in spaced if c.length >= least and not c.few and not c.is_category]
    if not texts and not numbers and beside <= 1:
        # Repeated phrases are categories if there are other features, else documents.
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
        return [c for c in columns if {c.name, c.source} & {*wanted, *categorical}], []
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
            reason = "it holds text" if column.is_category else column.reason or _UNUSED[column.kind]
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
