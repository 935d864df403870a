"""Trials of ``make bench-default``: training rows, and the test rows that a model of them is asked about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold, train_test_split

from experiments.data import DataError, body, data_folder

Codes = npt.NDArray[np.intp]

#: Corpora, by the name that they have on the page.
CORPORA = {
    "20 Newsgroups": "20newsgroups_bydate",
    "sms": "sms_spam",
    "ag": "ag_news_testpart",
    "bbc": "bbc_news",
    "movie": "movie_reviews_polarity2",
    "r8": "reuters21578_r8",
    "r52": "reuters21578_single",
    "ohsumed": "ohsumed_single23",
    "webkb": "webkb_raw_html",
}
SECTIONS = ("text", "short", "few", "tables")
TABLE_SEEDS = (0, 1, 2)
LABEL_SEEDS = (0, 1, 2, 3, 4)
PIECES = ("5", "20", "50", "all")
LABELS = (1000, 300)
N_TABLE_FOLDS = 5


class Rows(NamedTuple):
    """Documents or a table, and their classes as codes 0, 1, ..."""

    X: Any
    y: Codes


@dataclass(frozen=True)
class Trial:
    """One training set; ``tests`` holds the test rows by the name of their row in the record."""

    section: str
    seed: int
    fold: int
    train: Rows
    tests: dict[str, Rows]


def require_folder(kind: str) -> Path:
    """Return the folder of one kind of data, or raise `DataError`."""
    folder = data_folder()
    if folder is None or not (folder / kind).is_dir():
        raise DataError(f"There is no folder {kind!r} of data. Set MAXDISC_DATA to the folder that holds it.")
    return folder / kind


def table_names() -> list[str]:
    """Return the names of all gene sets, in alphabetical order."""
    return sorted(file.stem for file in require_folder("genes").glob("*.npz"))


def row_names(section: str) -> list[str]:
    """Return the rows of a section of the record."""
    names = {
        "text": lambda: list(CORPORA),
        "short": lambda: list(PIECES),
        "few": lambda: [str(n) for n in LABELS],
        "tables": table_names,
    }
    return [f"{section}/{name}" for name in names[section]()]


def make_trials(rows: list[str]) -> Iterator[Trial]:
    """Yield the trials of these rows; the first seed of all tables comes before the second."""
    wanted: dict[str, list[str]] = {section: [] for section in SECTIONS}
    for row in rows:
        section, name = row.split("/", 1)
        wanted[section].append(name)
    for name in wanted["text"]:
        yield from make_text_trials(name)
    if wanted["short"]:
        yield make_short_trial(wanted["short"])
    for name in wanted["few"]:
        yield from make_few_label_trials(int(name))
    for seed in TABLE_SEEDS:
        for name in wanted["tables"]:
            yield from make_table_trials(name, seed)


# ------------------------------------------------------------------ text


class Corpus(NamedTuple):
    """Documents, codes of their classes, and the split that came with them, if any."""

    text: npt.NDArray[np.object_]
    y: Codes
    split: npt.NDArray[np.object_] | None


@lru_cache(maxsize=1)
def read_corpus(name: str) -> Corpus:
    """Read a corpus by its name on the page."""
    import pyarrow.parquet as pq

    table = pq.read_table(require_folder("text") / f"{CORPORA[name]}.parquet")
    columns = {c: np.array(table[c].to_pylist(), dtype=object) for c in table.column_names}
    split = columns.get("split")
    has_split = split is not None and {"train", "test"} <= set(split)
    codes = np.unique(columns["label"].astype(str), return_inverse=True)[1]
    return Corpus(columns["text"], codes, split if has_split else None)


def make_text_trials(name: str) -> Iterator[Trial]:
    """Yield a corpus by its own split, or else its two folds."""
    corpus = read_corpus(name)
    if corpus.split is not None:
        folds = [(np.flatnonzero(corpus.split == "train"), np.flatnonzero(corpus.split == "test"))]
    else:
        folds = list(StratifiedKFold(2, shuffle=True, random_state=11).split(corpus.text, corpus.y))
    for fold, (train, test) in enumerate(folds):
        yield Trial("text", 11, fold, take(corpus, train), {f"text/{name}": take(corpus, test)})


def take(corpus: Corpus, rows: Codes) -> Rows:
    """Return some documents as a list, as users have them."""
    return Rows(list(corpus.text[rows]), corpus.y[rows])


def newsgroups_parts() -> tuple[Codes, Codes]:
    """Return the training and test rows of 20 Newsgroups, by date."""
    split = read_corpus("20 Newsgroups").split
    assert split is not None
    return np.flatnonzero(split == "train"), np.flatnonzero(split == "test")


def make_short_trial(pieces: list[str]) -> Trial:
    """Return the bodies of 20 Newsgroups, with pieces of test bodies of 5, 20, 50 or all words."""
    import pandas as pd

    corpus, (train, test) = read_corpus("20 Newsgroups"), newsgroups_parts()
    asked = pd.Series(test).sample(min(3000, len(test)), random_state=0).to_numpy()
    asked = np.array([row for row in asked if len(body(corpus.text[row]).split()) >= 50])
    bodies = [body(text) for text in corpus.text[asked]]
    tests = {f"short/{size}": Rows(cut_pieces(bodies, size), corpus.y[asked]) for size in pieces}
    return Trial("short", 0, 0, Rows([body(t) for t in corpus.text[train]], corpus.y[train]), tests)


def cut_pieces(texts: list[str], size: str) -> list[str]:
    """Return ``size`` consecutive words of each text, from a random place; "all" returns the texts."""
    if size == "all":
        return texts
    rng, n = np.random.default_rng(0), int(size)
    pieces = []
    for text in texts:
        words = text.split()
        start = int(rng.integers(len(words) - n + 1))
        pieces.append(" ".join(words[start : start + n]))
    return pieces


def make_few_label_trials(n_labels: int) -> Iterator[Trial]:
    """Yield stratified draws of so many raw posts; the test part is always the same."""
    corpus, (train, test) = read_corpus("20 Newsgroups"), newsgroups_parts()
    for seed in LABEL_SEEDS:
        drawn, _ = train_test_split(train, train_size=n_labels, stratify=corpus.y[train], random_state=seed)
        yield Trial("few", seed, 0, take(corpus, np.sort(drawn)), {f"few/{n_labels}": take(corpus, test)})


# ------------------------------------------------------------------ tables


def read_table(name: str) -> Rows:
    """Read a gene set without classes of fewer rows than folds."""
    with np.load(require_folder("genes") / f"{name}.npz") as stored:
        X, labels = stored["X"].astype(np.float64), stored["y"]
    _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    large = sizes >= N_TABLE_FOLDS
    kept = large[codes]
    return Rows(X[kept], (np.cumsum(large) - 1)[codes[kept]])


def make_table_trials(name: str, seed: int) -> Iterator[Trial]:
    """Yield the five folds of a gene set."""
    X, y = read_table(name)
    folds = StratifiedKFold(N_TABLE_FOLDS, shuffle=True, random_state=seed)
    for fold, (train, test) in enumerate(folds.split(X, y)):
        tests = {f"tables/{name}": Rows(X[test], y[test])}
        yield Trial("tables", seed, fold, Rows(X[train], y[train]), tests)
