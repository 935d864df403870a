"""The paper's data sets, as its protocol has them: tables of counts, and tables of expression values."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from experiments.paper import GENE_TABLE, TEXT_TASKS
from maxdisc import TermFrequencyVectorizer

ROOT = Path(__file__).resolve().parents[1]

#: With these test parts left out, all sample counts of the paper's text table come out exactly.
LEFT_OUT = ("rec.motorcycles", "soc.religion.christian")

#: What is read of a document, and which words are kept.
REPRESENTATIONS = {
    "posts": {"token_pattern": r"(?u)\b[a-zA-Z]{2,}\b", "min_df": 3},
    "bodies": {"token_pattern": r"(?u)\b[a-zA-Z]{3,}\b", "min_count": 3},
}

#: Files of the gene sets; two have all samples of the paper's, but an eighth of the genes or fewer.
GENE_FILES = {"lung": "lung_filtered1543", "gcm": "gcm_filtered1363"}

#: Names at openml.org; a set is taken only if it has the paper's shape.
OPENML = {"colon": "colon", "leukemia": "leukemia", "cns": "CNS", "dlbcl": "DLBCL", "srbct": "SRBCT"}


class Task(NamedTuple):
    """A table and its classes, coded 0, 1, ...; counts are sparse."""

    X: npt.NDArray[np.float64] | sp.csr_array
    y: npt.NDArray[np.intp]


class Documents(NamedTuple):
    """Texts, their newsgroups, and the part of the collection they are from."""

    text: npt.NDArray[np.object_]
    label: npt.NDArray[np.object_]
    split: npt.NDArray[np.object_]


class DataError(RuntimeError):
    """Data that is neither here nor to be fetched; one line says what to do."""


def data_folder() -> Path | None:
    """Where data sets are: MAXDISC_DATA, else shared/data beside the checkout, else nowhere."""
    given = os.environ.get("MAXDISC_DATA")
    if given and not Path(given).is_dir():
        raise DataError(f"MAXDISC_DATA={given} is not a folder.")
    folder = Path(given) if given else ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


@lru_cache(maxsize=1)
def newsgroups() -> Documents:
    """The documents of 20 Newsgroups, bydate, that the paper has."""
    folder = data_folder()
    if folder is not None and (file := folder / "text" / "20newsgroups_bydate.parquet").exists():
        import pyarrow.parquet as pq

        table = pq.read_table(file)
        found = Documents(
            *(np.array(table[name].to_pylist(), dtype=object) for name in ("text", "label", "split"))
        )
    else:
        found = _fetched_newsgroups()
    kept = ~((found.split == "test") & np.isin(found.label, LEFT_OUT))
    return Documents(*(column[kept] for column in found))


def _fetched_newsgroups() -> Documents:
    from sklearn.datasets import fetch_20newsgroups

    text: list[str] = []
    label: list[str] = []
    splits: list[str] = []
    for split in ("train", "test"):
        try:
            part = fetch_20newsgroups(subset=split, shuffle=False)
        except OSError as error:
            raise DataError(
                f"20 Newsgroups cannot be fetched ({type(error).__name__}): set MAXDISC_DATA to a folder "
                "that holds text/20newsgroups_bydate.parquet."
            ) from None
        text += part.data
        label += [part.target_names[code] for code in part.target]
        splits += [split] * len(part.data)
    return Documents(*(np.array(column, dtype=object) for column in (text, label, splits)))


def body(text: str) -> str:
    """A post without its header, which ends at the first blank line."""
    _, blank, rest = text.replace("\r\n", "\n").partition("\n\n")
    return rest if blank else text


@lru_cache(maxsize=len(TEXT_TASKS))
def text_task(representation: str, row: str) -> Task:
    """Counts of words and classes of a row of the text table; the vocabulary is that of all its documents."""
    documents = newsgroups()
    codes = np.full(len(documents.label), -1)
    for code, groups in enumerate(TEXT_TASKS[row]):
        codes[np.isin(documents.label, groups)] = code
    texts = documents.text[codes >= 0]
    if representation == "bodies":
        texts = np.array([body(text) for text in texts], dtype=object)
    words = TermFrequencyVectorizer(stop_words="english", scale=None, **REPRESENTATIONS[representation])
    X = sp.csr_array(words.fit_transform(texts), dtype=np.float64)
    return Task(X, codes[codes >= 0])


@lru_cache(maxsize=2)
def gene_set(row: str) -> Task:
    """Expression values and classes of a row of the gene table."""
    folder, name = data_folder(), GENE_FILES.get(row, row)
    if folder is not None and (file := folder / "genes" / f"{name}.npz").exists():
        with np.load(file) as stored:
            X, labels = stored["X"].astype(np.float64), stored["y"]
    else:
        X, labels = _fetched_genes(row)
    return Task(X, np.unique(labels, return_inverse=True)[1])


def _fetched_genes(row: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.generic]]:
    from sklearn.datasets import fetch_openml

    way_out = f"set MAXDISC_DATA to a folder that holds genes/{GENE_FILES.get(row, row)}.npz."
    if row not in OPENML:
        raise DataError(f"the gene set {row!r} is not at openml.org: {way_out}")
    try:
        found = fetch_openml(OPENML[row], version="active", as_frame=False, parser="liac-arff")
    except (OSError, ValueError) as error:
        raise DataError(
            f"the gene set {row!r} cannot be fetched from openml.org ({type(error).__name__}): {way_out}"
        ) from None
    shape = (GENE_TABLE[row]["rows"], GENE_TABLE[row]["features"])
    if found.data.shape != shape:
        other = found.data.shape
        raise DataError(f"openml.org has {row!r} of shape {other}, not the paper's {shape}: {way_out}")
    return np.asarray(found.data, dtype=np.float64), np.asarray(found.target)
