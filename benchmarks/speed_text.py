"""The row of the table of speed that begins with raw text; peers that are not installed are named."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from comparing import Comparison, Row, at_least
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from speed_runs import Run
from text import newsgroups

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
from maxdisc.datasets import load_docstrings

PEER = "CountVectorizer + MultinomialNB"
TOKEN = r"\b\w\w+\b"
Work = Callable[[], Any]


def polars_tokens(texts: Sequence[str]) -> Work:
    """Words of every document, and how often each occurs there."""
    import polars as pl

    frame = pl.DataFrame({"row": np.arange(len(texts)), "text": list(texts)}).lazy()
    words = pl.col("text").str.to_lowercase().str.extract_all(TOKEN).alias("word")
    return lambda: frame.select("row", words).explode("word").group_by("row", "word").len().collect()


def duckdb_tokens(texts: Sequence[str], threads: int) -> Work:
    import duckdb
    import pyarrow as pa

    connection = duckdb.connect(config={"threads": threads})
    connection.register("documents", pa.table({"row": np.arange(len(texts)), "text": pa.array(texts)}))
    query = (
        "select row, word, count(*) from (select row, "
        f"unnest(regexp_extract_all(lower(text), '{TOKEN}')) as word from documents) group by row, word"
    )
    return lambda: connection.sql(query).to_arrow_table()


def vowpal_wabbit(texts: Sequence[str], labels: np.ndarray, folder: Path) -> Work:
    """One pass of one-against-all over a file of words; that the file is written is not counted."""
    from vowpalwabbit import Workspace

    codes = np.unique(labels, return_inverse=True)[1] + 1
    file = folder / "vowpal_wabbit.txt"
    lines = (f"{c} | {' '.join(re.findall(TOKEN, t.lower()))}" for c, t in zip(codes, texts, strict=True))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lambda: Workspace(f"--oaa {codes.max()} -d {file} -b 18 --quiet").finish()


def fasttext_model(texts: Sequence[str], labels: np.ndarray, folder: Path, threads: int) -> Work:
    """As it is by default, five passes; that the file is written is not counted."""
    import fasttext

    codes = np.unique(labels, return_inverse=True)[1]
    file = folder / "fasttext.txt"
    lines = (
        f"__label__{c} {' '.join(re.findall(TOKEN, t.lower()))}" for c, t in zip(codes, texts, strict=True)
    )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lambda: fasttext.train_supervised(str(file), thread=threads, verbose=0)


def raw_text(run: Run) -> Row:
    what = "raw text to fitted model, " + ("docstrings" if run.quick else "20 Newsgroups")
    try:
        texts, labels = docstrings() if run.quick else newsgroups("train")
    except FileNotFoundError as error:
        return Row(
            what, skipped=f"the data are not here ({Path(error.filename or '').name}); set MAXDISC_DATA"
        )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        informed: dict[str, tuple[str, Callable[[], Work]]] = {
            "polars, words alone": ("polars", lambda: polars_tokens(texts)),
            "duckdb, words alone": ("duckdb", lambda: duckdb_tokens(texts, run.threads)),
            "Vowpal Wabbit, one pass": ("vowpalwabbit", lambda: vowpal_wabbit(texts, labels, folder)),
            "fastText, five passes": ("fasttext", lambda: fasttext_model(texts, labels, folder, run.threads)),
        }
        here = {name: make() for name, (package, make) in informed.items() if find_spec(package)}
        ours = make_pipeline(TermFrequencyVectorizer(), MaxDiscClassifier(evidence="raw"))
        theirs = make_pipeline(CountVectorizer(), MultinomialNB())
        seconds = run.best({"ours": lambda: ours.fit(texts, labels), PEER: lambda: theirs.fit(texts, labels)})
        # By themselves: some give memory back when they are done, which whoever comes next must get again.
        seconds |= run.best(here)
    others = [Comparison(PEER, None, goal=at_least(7.0))]
    others += [Comparison(name, None, absent="" if name in here else "not installed") for name in informed]
    facts = {"documents": len(texts), "one thread by nature": [PEER, "Vowpal Wabbit, one pass"]}
    return Row.timed(what, seconds, others, threads=run.threads, facts=facts)


def docstrings() -> tuple[list[str], np.ndarray]:
    """Texts that every machine has."""
    documents = load_docstrings("package")
    return list(documents.data)[::4], np.asarray(documents.target)[::4]
