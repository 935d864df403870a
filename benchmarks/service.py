"""A real ``maxdisc serve`` for benchmarks: models to serve, the process, its memory and its log."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from sklearn.pipeline import make_pipeline

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer, save

DATA = Path(os.environ.get("MAXDISC_DATA", "../shared/data"))


def newsgroups_model(path: Path) -> dict[str, int]:
    """Fit 20 Newsgroups, by date, with defaults; documents of the test part stand beside the model."""
    import pyarrow.parquet as pq

    table = pq.read_table(DATA / "text" / "20newsgroups_bydate.parquet")
    texts, labels = table["text"].to_pylist(), np.array(table["label"].to_pylist())
    train = np.array(table["split"].to_pylist()) == "train"
    model = make_pipeline(TermFrequencyVectorizer(min_count=2), MaxDiscClassifier())
    model.fit([t for t, is_train in zip(texts, train, strict=True) if is_train], labels[train])
    save(model, path, about={"text": "text", "label": "label"})
    # Short documents: some lines from the middle of each post of the test part.
    short = [" ".join(t.split()[30:60]) for t, is_train in zip(texts, train, strict=True) if not is_train]
    path.with_suffix(".json").write_text(json.dumps([t for t in short if t]))
    return {"n_features": int(model[-1].n_features_in_), "n_selected": int(model[-1].n_selected_)}


def small_models(folder: Path) -> list[Path]:
    """A model of text, of a table of mixed columns, and of sparse vectors."""
    import pandas as pd
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    words = {"space": "orbit shuttle launch moon", "hockey": "goalie puck ice game"}
    labels = [list(words)[i % 2] for i in range(200)]
    texts = [" ".join([*rng.choice(words[c].split(), 4), *rng.choice(["the", "and"], 2)]) for c in labels]
    ill = np.arange(200) % 2 == 0
    frame = pd.DataFrame(
        {
            "age": np.where(ill, 60, 35) + rng.normal(0, 6, 200),
            "smokes": rng.random(200) < np.where(ill, 0.7, 0.2),
            "ward": np.where(ill, rng.choice(list("nnw"), 200), rng.choice(list("sse"), 200)),
        }
    )
    X = sp.csr_array(rng.poisson(np.repeat([[1.0, 0.2], [0.2, 2.0]], 100, axis=0)).astype(float))
    fitted = {
        "text": make_pipeline(TermFrequencyVectorizer(), MaxDiscClassifier()).fit(texts, labels),
        "table": MaxDiscClassifier(n_features="all").fit(frame, np.where(ill, "ill", "well")),
        "vectors": MaxDiscClassifier().fit(X, ["a"] * 100 + ["b"] * 100),
    }
    for name, model in fitted.items():
        save(model, folder / f"{name}.maxdisc")
    return [folder / f"{name}.maxdisc" for name in fitted]


class Running:
    """The process of a service."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self.log = process, log
        self.port = 0

    def wait(self) -> None:
        """Until it is ready."""
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            said = self.events()
            self.port = next((line["port"] for line in said if line["event"] == "listening"), 0)
            if any(line["event"] == "ready" for line in said):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"the service did not start: {self.log.read_text()[-500:]}")

    def events(self) -> list[dict[str, Any]]:
        """The lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def memory(self) -> float:
        """Resident, in MB."""
        return round(psutil.Process(self.process.pid).memory_info().rss / 1e6, 1)

    def cpu_seconds(self) -> float:
        """That it has used so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def connection(self, timeout: float = 60.0) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)


@contextmanager
def served(folder: Path, models: list[Path], *options: str) -> Iterator[Running]:
    """A service of these models, ended afterwards."""
    log = folder / "log"
    command = [sys.executable, "-m", "maxdisc", "serve", *map(str, models), "--port", "0", *options]
    with open(log, "wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    running = Running(process, log)
    try:
        running.wait()
        yield running
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
