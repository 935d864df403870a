"""Writes the model files that later versions must still read; run once for each format, never over old files.

python tests/artifact_fixtures/write_fixtures.py      (those that are there are left as they are)
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from maxdisc import DiscriminativeMaxEnt, MaxDiscClassifier, TermFrequencyVectorizer, save
from maxdisc.families import NumericFamily
from maxdisc.functions import Indicator, Power, Spline
from maxdisc.joint import Joint
from maxdisc.scaling import CountScaler
from maxdisc.support import Support

HERE = Path(__file__).parent


def write(name, model, X, shown, **options):
    if (HERE / f"{name}.json").exists():
        return
    rows = X if not isinstance(model, Pipeline) else model[:-1].transform(X)
    classifier = model if not isinstance(model, Pipeline) else model[-1]
    stored = {"X": shown, "predicted": model.predict(X).tolist()}
    if isinstance(classifier, MaxDiscClassifier):
        stored["joint_log_proba"] = classifier.predict_joint_log_proba(rows).tolist()
        if classifier.evidence_ is not None and getattr(classifier.evidence_, "novelty", None) is not None:
            stored["novelty"] = classifier.novelty(rows).tolist()
        if classifier.n_iter_:
            stored["unlabelled"] = [classifier.n_iter_, classifier.unlabelled_weight_]
    else:
        stored["log_proba"] = classifier.predict_log_proba(rows).tolist()
    with open(HERE / f"{name}.json", "x", encoding="utf-8") as file:
        json.dump(stored, file)
    save(model, HERE / f"{name}.maxdisc", about={"fixture": name}, **options)


def discriminative():
    """What format 2 has first."""
    y = np.arange(24) % 3
    X = np.random.default_rng(1).normal(size=(24, 3)) + y[:, None] * [0.0, 2.0, 0.5]
    frame = pd.DataFrame(X, columns=["a", "größe", ""])
    labels = np.array(["low", "middle", "high"], dtype=object)[y]
    few = frame[:6]
    shown = {name: few[name].tolist() for name in few}
    write("discriminative-table", DiscriminativeMaxEnt().fit(frame, labels), few, shown)
    texts = ["Die Katze schläft", "the cat sleeps", "ein Hund läuft", "a dog runs", "die Hunde", "the dogs"]
    text = Pipeline(
        [
            ("vectorizer", TermFrequencyVectorizer(scale="log")),
            ("classifier", DiscriminativeMaxEnt("iis", penalty=0.5)),
        ]
    )
    write("discriminative-text", text.fit(texts, [True, False] * 3), texts, texts)


def main():
    discriminative()
    rng = np.random.default_rng(0)
    texts = [
        "Die Katze schläft",
        "the cat sleeps",
        "ein Hund läuft",
        "a dog runs",
        "die Hunde",
        "the dogs run",
    ]
    languages = ["de", "en"] * 2 + ["de", "en"]
    text = Pipeline(
        [
            ("vectorizer", TermFrequencyVectorizer(ngram_range=(1, 2), stop_words=["a", "the"])),
            ("classifier", MaxDiscClassifier(cv=2)),
        ]
    )
    write("text", text.fit(texts, languages), texts, texts)

    y = np.arange(24) % 3
    X = rng.normal(size=(24, 4)) + y[:, None] * [0.0, 2.0, 0.5, 100.0]
    X[::5, 1] = np.nan
    frame = pd.DataFrame(X, columns=["a", "größe", "c d", ""])
    labels = np.array(["low", "middle", "high"], dtype=object)[y]
    few = frame[:6]
    shown = {name: [None if np.isnan(v) else v for v in few[name]] for name in few}
    write("table", MaxDiscClassifier(rule="one_se").fit(frame, labels), few, shown)

    bits = (rng.random((24, 5)) < 0.2 + 0.2 * y[:, None]).astype(float)
    presence = MaxDiscClassifier("bernoulli", n_features=3, prior=[0.2, 0.3, 0.5])
    write("presence", presence.fit(bits, y.astype(np.int32)), bits[:6], bits[:6].tolist())

    amounts = rng.gamma(2.0 + y[:, None], size=(24, 4))
    small = MaxDiscClassifier("gamma", divergence="jeffreys").fit(amounts, y > 0)
    write("without-moments", small, amounts[:6], amounts[:6].tolist(), moments=False)

    # Format 2.
    both = MaxDiscClassifier("gaussian", divergence="jensen_shannon", redundancy=0.5, n_features=3)
    write("redundancy", both.fit(frame, labels), few, shown)


def joint():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 3
    X = np.exp(rng.normal(size=(40, 5)) @ rng.normal(size=(5, 5)) + y[:, None] * [0.0, 2.0, 0.5, 1.0, 0.0])
    labels = np.array(["low", "middle", "high"], dtype=object)[y]
    shared = MaxDiscClassifier(structure=Joint(search="greedy", transform="log"), n_features=4)
    write("joint-shared", shared.fit(X, labels), X[:6], X[:6].tolist())
    several = MaxDiscClassifier(structure=Joint("per_class", "oas", transform=None), n_features=3, cv=2)
    write("joint-per-class", several.fit(X, y), X[:6], X[:6].tolist(), moments=False)


def averaged():
    rng = np.random.default_rng(2)
    y = np.arange(60) % 3
    X = np.exp(
        rng.normal(size=(60, 6)) @ rng.normal(size=(6, 6)) / 2 + y[:, None] * [0.0, 0.8, 0.5, 0.2, 0.0, 0.0]
    )
    X[2, 1] = np.nan
    labels = np.array(["low", "middle", "high"], dtype=object)[y]
    refined = MaxDiscClassifier(structure="joint", evidence="refined").fit(X, labels)
    shown = [[None if np.isnan(v) else v for v in row] for row in X[:6]]
    write("averaged-refined", refined, X[:6], shown)
    one = MaxDiscClassifier(structure=Joint("per_class"), evidence="calibrated", n_features=4, cv=2)
    write("averaged-per-class", one.fit(X, y), X[:6], shown, moments=False)


def weighed():
    rng = np.random.default_rng(3)
    y = np.arange(90) % 2
    shared = 2 * rng.normal(size=(90, 3))
    first = shared + 0.5 * y[:, None] + 0.1 * rng.normal(size=(90, 3))
    frame = pd.DataFrame(np.hstack([first, shared]), columns=["a", "b", "größe", "d", "e f", ""])
    refined = MaxDiscClassifier(evidence="refined", n_features=5).fit(frame, np.array(["no", "yes"])[y])
    assert refined.evidence_.correction is not None
    write("weighed-refined", refined, frame[:6], {name: frame[name][:6].tolist() for name in frame})
    counts = rng.poisson(np.exp(rng.normal(size=(2, 8)))[y] * rng.uniform(0.3, 3, (90, 1)))
    scaled = Pipeline([("scale", CountScaler("log")), ("classify", MaxDiscClassifier(cv=3))])
    write("weighed-scaled", scaled.fit(counts, y), counts[:6], counts[:6].tolist())


def numeric():
    rng = np.random.default_rng(1)
    y = np.arange(24) % 2
    X = rng.beta(2.0 + y[:, None], 3.0, size=(24, 3))
    family = NumericFamily(
        Support(0.0, 1.0), (Power(1), Power(2), Indicator(-np.inf, 0.25)), base=Spline(0.5, 1)
    )
    model = MaxDiscClassifier(family, smoothing=1.0, n_features=2).fit(X, y)
    write("numeric", model, X[:6], X[:6].tolist())


def mixed():
    """What format 3 has first: columns of several families, soft labels, p-values of unknown things."""
    rng = np.random.default_rng(4)
    y = np.arange(120) % 3
    frame = pd.DataFrame(
        {
            "größe": rng.normal(y, 1.0),
            "count": rng.poisson(1.0 + y),
            "amount": rng.gamma(2.0 + y),
            "told": rng.random(120) < 0.2 + 0.3 * y,
            "colour": np.array(["red", "grün", "blue"], dtype=object)[(y + (rng.random(120) < 0.3)) % 3],
            "": np.array(["up", "down"], dtype=object)[rng.integers(0, 2, 120)],
        }
    )
    frame.loc[::7, "größe"] = np.nan
    frame["colour"] = frame["colour"].where(np.arange(120) % 11 > 0, None)
    labels = np.array(["low", "middle", "high"], dtype=object)[y]
    few = frame[:8]
    shown = {name: [None if pd.isna(v) else v for v in few[name].tolist()] for name in few}
    write("mixed-table", MaxDiscClassifier(missing="informative").fit(frame, labels), few, shown)
    given = MaxDiscClassifier({"größe": "gaussian"}, categorical_features=["count"], prior=[0.2, 0.3, 0.5])
    write("mixed-without-moments", given.fit(frame, labels), few, shown, moments=False)
    # Two heaps, of which five rows in a hundred have a label.
    which = np.arange(400) % 2
    X = rng.normal(size=(400, 4)) + which[:, None] * [3.0, 1.0, 0.0, 0.0]
    some = [label if row % 40 < 4 else None for row, label in enumerate(which.tolist())]
    soft = MaxDiscClassifier(family="gaussian").fit(X, some)
    assert soft.n_iter_ > 0
    write("few-labels", soft, X[:6], X[:6].tolist())
    strange = np.r_[X[:4], [[30.0, -20.0, 0.0, 5.0]]]
    write("novelty", MaxDiscClassifier().fit(X, which), strange, strange.tolist())


if __name__ == "__main__":
    main()
    joint()
    averaged()
    weighed()
    numeric()
    mixed()
