"""Commands in this process, and small data to run them on."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_iris

from maxdisc.cli import main

WORDS = {
    "space": "orbit moon rocket launch shuttle",
    "hockey": "goal ice puck team season",
    "cooking": "salt pan butter oven recipe",
}
COMMON = "the and of with about near some more news today"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def rows(self):
        return list(csv.DictReader(io.StringIO(self.out)))


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command; ``stdin`` is what it finds on standard input."""

    def command(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return command


def documents(n, seed):
    rng = np.random.default_rng(seed)
    for i in range(n):
        topic = list(WORDS)[i % 3]
        words = [*rng.choice(WORDS[topic].split(), 4), *rng.choice(COMMON.split(), 8)]
        yield {"id": str(i), "body": " ".join(rng.permutation(words)), "topic": topic}


def write_csv(path, rows):
    rows = list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def iris_rows():
    data = load_iris()
    for i, (x, c) in enumerate(zip(data.data.tolist(), data.target, strict=True)):
        yield {
            "id": i,
            **dict(zip(("sepal_l", "sepal_w", "petal_l", "petal_w"), x, strict=True)),
            "plot": f"p-{i}",
            "species": str(data.target_names[c]),
        }


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with train.csv and test.csv (documents), iris.csv, and a model of each."""
    folder = tmp_path_factory.mktemp("files")
    write_csv(folder / "train.csv", documents(150, seed=0))
    write_csv(folder / "test.csv", documents(60, seed=1))
    write_csv(folder / "iris.csv", iris_rows())
    assert (
        main(["fit", str(folder / "train.csv"), "-o", str(folder / "topics.maxdisc"), "--keep-moments", "-q"])
        == 0
    )
    assert main(["fit", str(folder / "iris.csv"), "-o", str(folder / "iris.maxdisc"), "-q"]) == 0
    return folder
