"""Small data sets in the places and forms of the real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments import data


def documents(rng, groups, n):
    """Posts of two parts; each group has words of its own, and a header that names none."""
    for g, group in enumerate(groups):
        for i in range(n):
            own = [f"word{chr(97 + g)}{chr(97 + rng.integers(6))}" for _ in range(5)]
            other = [f"thing{chr(97 + rng.integers(20))}" for _ in range(8)]
            text = "Subject: hello header\n\n" + " ".join([*own, *other])
            yield text, group, "train" if i % 2 else "test"


@pytest.fixture(autouse=True)
def no_caches():
    """Data is read anew, and forgotten."""
    caches = (data.newsgroups, data.text_task, data.gene_set)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def small_data(tmp_path, monkeypatch) -> Path:
    """A folder with one row of the text table and one of the gene table."""
    rng = np.random.default_rng(0)
    (tmp_path / "text").mkdir()
    (tmp_path / "genes").mkdir()
    groups = ["rec.autos", "rec.motorcycles", "sci.space"]
    text, label, split = zip(*documents(rng, groups, 40), strict=True)
    columns = pa.table({"text": text, "label": label, "split": split})
    pq.write_table(columns, tmp_path / "text" / "20newsgroups_bydate.parquet")
    y = np.repeat(["normal", "tumor"], [20, 30])
    X = rng.normal(size=(50, 40)) + 2.0 * (np.arange(40) < 5) * (y == "tumor")[:, None]
    np.savez(tmp_path / "genes" / "colon.npz", X=X.astype(np.float32), y=y)
    monkeypatch.setenv("MAXDISC_DATA", str(tmp_path))
    return tmp_path
