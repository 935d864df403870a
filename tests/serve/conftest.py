"""Models to serve, and services: in this process for what they answer, in their own for how they live."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer, save

WORDS = {
    "space": "orbit shuttle launch moon rocket nasa",
    "hockey": "goalie puck ice game team season",
    "cars": "engine wheel brake dealer motor drive",
}
COMMON = "the and of with very new old"


def missing_extra(*packages):
    """Why tests of the service cannot run here; None where CI promises that they can."""
    for package in packages:
        try:
            __import__(package)
        except ImportError:
            if os.environ.get("MAXDISC_REQUIRE_EXTRAS"):
                raise
            return f"needs {package}: python -m pip install '.[serve,peers]'"
    return None


if (reason := missing_extra("fastapi", "uvicorn", "httpx")) is not None:
    collect_ignore_glob = ["test_*.py"]


def documents(n=60, seed=0):
    rng = np.random.default_rng(seed)
    labels = [list(WORDS)[i % 3] for i in range(n)]
    texts = [
        " ".join([*rng.choice(WORDS[label].split(), 4), *rng.choice(COMMON.split(), 3)]) for label in labels
    ]
    return texts, labels


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Model files by kind."""
    from sklearn.pipeline import make_pipeline

    folder = tmp_path_factory.mktemp("models")
    texts, labels = documents(120)
    text = make_pipeline(TermFrequencyVectorizer(), MaxDiscClassifier(n_features="all", random_state=0))
    save(text.fit(texts, labels), folder / "text.maxdisc", about={"text": "body", "label": "topic"})
    grams = make_pipeline(
        TermFrequencyVectorizer(ngram_range=(1, 2), stop_words=["the"]),
        MaxDiscClassifier(n_features="all", evidence="raw"),
    )
    save(grams.fit(texts, labels), folder / "grams.maxdisc")
    one = MaxDiscClassifier(n_features="all", random_state=0, vectorizer=TermFrequencyVectorizer())
    save(one.fit(texts, labels), folder / "one.maxdisc", about={"text": "body", "label": "topic"})
    save(table_model(), folder / "table.maxdisc", about={"label": "state"})
    rng = np.random.default_rng(1)
    import scipy.sparse as sp

    X = sp.csr_array(rng.poisson(np.repeat([[1.0, 0.2, 3.0], [0.2, 2.0, 3.0]], 30, axis=0)).astype(float))
    save(MaxDiscClassifier(evidence="raw").fit(X, ["a"] * 30 + ["b"] * 30), folder / "vectors.maxdisc")
    return folder


def table_model():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    ill = np.arange(120) % 2 == 0
    frame = pd.DataFrame(
        {
            "age": np.where(ill, 60, 35) + rng.normal(0, 6, 120),
            "smokes": np.where(ill, rng.random(120) < 0.7, rng.random(120) < 0.2),
            "ward": np.where(ill, rng.choice(list("nnw"), 120), rng.choice(list("sse"), 120)),
        }
    )
    frame.loc[::10, "age"] = None
    return MaxDiscClassifier(n_features="all").fit(frame, np.where(ill, "ill", "well"))


@pytest.fixture(scope="session")
def environment():
    """Of a process that runs this copy of the package."""
    import maxdisc

    source = str(Path(maxdisc.__file__).parents[1])
    known = {k: v for k, v in os.environ.items() if k not in ("MAXDISC_TOKEN", "PYTEST_CURRENT_TEST")}
    return {**known, "PYTHONPATH": source, "MAXDISC_NUM_THREADS": "1"}


class Process:
    """A real ``maxdisc serve``."""

    def __init__(self, arguments, environment, folder, program=None):
        self.log_path = folder / f"log-{time.monotonic_ns()}"
        how = ["-m", "maxdisc"] if program is None else ["-c", program]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, *how, "serve", *map(str, arguments)],
                stdout=log,
                stderr=log,
                env=environment,
            )
        self.port = None

    def log(self):
        """The lines of the log so far."""
        lines = self.log_path.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def events(self, event):
        return [line for line in self.log() if line["event"] == event]

    def wait_for(self, event, n=1, seconds=120):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if len(found := self.events(event)) >= n:
                return found[n - 1]
            assert self.process.poll() is None, self.log_path.read_text()
            time.sleep(0.05)
        raise AssertionError(f"no {event!r} within {seconds} s: {self.log_path.read_text()}")

    def ready(self):
        self.port = self.wait_for("listening")["port"]
        self.wait_for("ready")
        return self

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def connected(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(60)


def started(environment, folder):
    """Start services; they are ended with the test or module."""
    running = []

    @contextmanager
    def start(*arguments, program=None, **more):
        process = Process(["--port", "0", *arguments], {**environment, **more}, folder, program)
        running.append(process)
        yield process.ready()

    yield start
    for process in running:
        if process.process.poll() is None:
            process.process.kill()
            process.process.wait()


@pytest.fixture
def serving(environment, tmp_path):
    yield from started(environment, tmp_path)


@pytest.fixture(scope="module")
def serving_all(environment, tmp_path_factory):
    yield from started(environment, tmp_path_factory.mktemp("services"))
