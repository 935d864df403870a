"""A service to browse and a page that is watched, for the tests of the page."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from playwright.sync_api import Locator, Page, expect
from sklearn.pipeline import make_pipeline

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer, save

# Others may be at work on the same machine.
expect.set_options(timeout=30_000)

TOKEN = "one-two-three"
# A class whose name is markup: wherever it stands, it stands as text.
COOKING = "<b>cooking</b>"
WORDS = {
    "space": "orbit moon rocket shuttle comet launch",
    "sport": "goal team hockey match season league",
    COOKING: "flour butter oven garlic onion script",
}
SHARED = "and the with over about from this that"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def text_model() -> Any:
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for label, own in WORDS.items():
        for _ in range(40):
            words = [*rng.choice(own.split(), 6), *rng.choice(SHARED.split(), 8)]
            words += rng.choice(" ".join(WORDS.values()).split(), 2).tolist()
            texts.append(" ".join(words))
            labels.append(label)
    return make_pipeline(TermFrequencyVectorizer(), MaxDiscClassifier()).fit(texts, labels)


def trees() -> tuple[pd.DataFrame, list[str]]:
    rng = np.random.default_rng(1)
    kinds = rng.choice(3, 240)
    bark = np.array(["rough", "smooth", "<i>scaly</i>"])
    frame = pd.DataFrame(
        {
            "height": rng.normal(np.array([18.0, 14.0, 25.0])[kinds], 3).round(1),
            "girth <b>m</b>": rng.gamma(np.array([9.0, 4.0, 6.0])[kinds], 0.3).round(2),
            "bark": np.where(rng.random(240) < 0.75, bark[kinds], rng.choice(bark, 240)),
            "evergreen": rng.random(240) < np.array([0.05, 0.05, 0.95])[kinds],
        }
    )
    frame.loc[rng.random(240) < 0.1, "height"] = np.nan
    return frame, np.array(["oak", "birch", "pine"])[kinds].tolist()


def wide_models() -> dict[str, Any]:
    """More columns than a form shows, with names and without; the last ones tell most."""
    rng = np.random.default_rng(2)
    codes = np.repeat([0, 1], 30)
    counts = rng.poisson(1.0 + 3.0 * codes[:, None] * (np.arange(50) >= 45))
    labels = np.array(["few", "many"])[codes]
    frame = pd.DataFrame(1.0 * counts, columns=[f"gene {k}" for k in range(50)])
    return {
        "genes": MaxDiscClassifier("gaussian", n_features="all").fit(frame, labels),
        "counts": MaxDiscClassifier(n_features="all").fit(sp.csr_array(counts), labels),
    }


@dataclass(frozen=True)
class Service:
    address: str
    models: dict[str, Any]

    def ask(self, path: str, data: Any = None, **query: Any) -> Any:
        """What a client that is no browser is told."""
        address = f"{self.address}{path}?{urllib.parse.urlencode(query)}"
        body = None if data is None else json.dumps(data).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=60) as answer:
            return json.load(answer)


@contextmanager
def running(models: dict[str, Any], folder: Path, *options: str, **environment: str) -> Iterator[Service]:
    """``maxdisc serve`` on a port that is free, until it is ready."""
    named = []
    for name, model in models.items():
        save(model, folder / f"{name}.maxdisc")
        named.append(str(folder / f"{name}.maxdisc"))
    log = folder / "log"
    command = [sys.executable, "-m", "maxdisc", "serve", *named, "--port", "0", "--drain", "0", *options]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **environment})
    try:
        address = f"http://127.0.0.1:{until(lambda: port(log), process, log)}/"
        until(lambda: is_ready(address), process, log)
        yield Service(address, models)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until(look: Any, process: subprocess.Popen[bytes], log: Path) -> Any:
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        if found := look():
            return found
        time.sleep(0.05)
    raise RuntimeError(f"the service did not start:\n{log.read_text()}")


def port(log: Path) -> int | None:
    found = re.search(r'"listening".*"port": (\d+)', log.read_text())
    return int(found[1]) if found else None


def is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}readyz", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@dataclass
class Visit:
    """A page that is watched: what it asks for, what it complains of."""

    page: Page
    service: Service
    complaints: list[str] = field(default_factory=list)
    #: Statuses of answers that a test provokes; the browser writes each into its console.
    provoked: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(30_000)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()))

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning") and not any(
            f"status of {status} " in message.text for status in self.provoked
        ):
            self.complaints.append(f"console: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.removeprefix("blob:").startswith(self.service.address):
            self.complaints.append(f"asked for {request.url}")

    def find(self, what: str) -> Locator:
        return self.page.locator(what)

    def open(self, view: str = "", model: str = "") -> Visit:
        self.page.goto(f"{self.service.address}#{view}")
        expect(self.find("#tabs")).to_be_visible(timeout=60_000)
        if model:
            self.find("#models").select_option(model)
            expect(self.find("#title")).to_have_text(model)
        return self

    def classify(self, text: str) -> Visit:
        self.find("#text").fill(text)
        expect(self.find("#bars table")).to_be_visible()
        return self

    def carry(self, name: str, content: str, where: str) -> None:
        """Drop a file."""
        carried = self.page.evaluate_handle(
            """([name, content]) => {
                const carried = new DataTransfer();
                carried.items.add(new File([content], name));
                return carried;
            }""",
            [name, content],
        )
        self.page.dispatch_event(where, "dragover", {"dataTransfer": carried})
        self.page.dispatch_event(where, "drop", {"dataTransfer": carried})

    def bars(self) -> list[list[str]]:
        """Name, value and log-odds of every line of the evidence."""
        rows = [row.split("\t") for row in self.page.locator("#bars tbody tr").all_inner_texts()]
        return [[cell.strip() for cell in row if cell.strip()] for row in rows]
