"""Commands on the file of a classifier of documents say what they say of its pipeline."""

from __future__ import annotations

import csv

import pytest
from sklearn.pipeline import Pipeline

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer, save


@pytest.fixture(scope="module")
def models(files, tmp_path_factory):
    """A classifier of documents and the pipeline of its steps, in two folders."""
    with (files / "train.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    texts, topics = [row["body"] for row in rows], [row["topic"] for row in rows]
    steps = [("vectorizer", TermFrequencyVectorizer(min_df=2)), ("classifier", MaxDiscClassifier())]
    paths = []
    for model in (MaxDiscClassifier(vectorizer=TermFrequencyVectorizer(min_df=2)), Pipeline(steps)):
        path = tmp_path_factory.mktemp("model") / "topics.maxdisc"
        save(model.fit(texts, topics), path, about={"text": "body", "label": "topic"})
        paths.append(path)
    return paths


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "{model}", "{test}", "--probabilities", "--explain", "3", "--unknown", "0.05"),
        ("explain", "{model}", "a rocket in orbit, and a goal"),
        ("explain", "{model}", "--data", "{test}", "--row", "7", "--json"),
        ("evaluate", "{model}", "{test}"),
        ("rank", "{model}", "--json"),
        ("info", "{model}"),
    ],
    ids=lambda command: " ".join(command[:1]),
)
def test_it_is_used_like_its_pipeline(run, files, models, command):
    said = []
    for model in models:
        done = run(*(part.format(model=model, test=files / "test.csv") for part in command))
        assert done.code == 0, done.err
        said.append((done.out + done.err).replace(str(model), "MODEL"))
    if command[0] == "info":
        # The size, the format and the largest parts are of the file.
        said = [[line for line in text.splitlines() if "words" in line or "classes" in line] for text in said]
        assert len(said[0]) > 1
    assert said[0] == said[1]
