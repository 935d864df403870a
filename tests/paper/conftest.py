"""The paper's data sets, as its protocol has them."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.paper import TEXT_TASKS
from maxdisc import TermFrequencyVectorizer


@pytest.fixture(scope="session")
def text_task(paper_data):
    """From a task's name to scaled counts and codes: the *posts* representation."""
    table = pq.read_table(paper_data / "text" / "20newsgroups_bydate.parquet")
    text, label, split = (np.array(table[c].to_pylist(), dtype=object) for c in ("text", "label", "split"))
    # The paper's counts come out exactly without these two test parts.
    paper = ~((split == "test") & np.isin(label, ["rec.motorcycles", "soc.religion.christian"]))
    text, label = text[paper], label[paper]

    def load(name):
        codes = np.full(len(label), -1)
        for code, groups in enumerate(TEXT_TASKS[name]):
            codes[np.isin(label, groups)] = code
        vectorizer = TermFrequencyVectorizer(r"(?u)\b[a-zA-Z]{2,}\b", stop_words="english", min_df=3)
        return vectorizer.fit_transform(text[codes >= 0]), codes[codes >= 0]

    return load


@pytest.fixture(scope="session")
def gene_set(paper_data):
    """From a set's name to expression values and labels."""

    def load(name):
        with np.load(paper_data / "genes" / f"{name}.npz") as stored:
            return stored["X"], stored["y"]

    return load
