"""Prometheus metrics of the service."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from maxdisc.serve.served_model import ServedModel

MEDIA_TYPE = CONTENT_TYPE_LATEST
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Description and labels of each counter.
COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "maxdisc_requests_total": ("Requests, by path and status.", ("path", "status")),
    "maxdisc_rows_total": ("Rows and documents predicted.", ("model",)),
    "maxdisc_unknown_rows_total": ("Rows called unknown, where a request asks for that.", ("model",)),
    "maxdisc_predicted_rows_total": ("Rows and documents predicted, by class.", ("model", "class")),
    "maxdisc_words_total": ("Words of the documents predicted.", ("model",)),
    "maxdisc_unknown_words_total": ("Words that are not in the model's vocabulary.", ("model",)),
    "maxdisc_cells_total": ("Cells of the table rows predicted.", ("model",)),
    "maxdisc_missing_cells_total": ("Cells that were missing.", ("model",)),
    "maxdisc_reloads_total": ("Replaced model files, by outcome.", ("model", "ended")),
    "maxdisc_refused_busy_total": ("Requests refused because the queue was full.", ()),
    "maxdisc_timeouts_total": ("Requests that exceeded the time limit.", ()),
    "maxdisc_connections_closed_total": (
        "Connections closed by the service: malformed or slow requests, no room, to make room.",
        ("why",),
    ),
}


@dataclass
class Tally:
    """Statistics of the rows of a request; ``words`` is None unless they are documents, ``cells`` a table."""

    rows: int = 0
    unknown_rows: int = 0
    labels: Count[str] = field(default_factory=Count)
    words: int | None = None
    unknown_words: int = 0
    cells: int | None = None
    missing_cells: int = 0

    def add(self, model: ServedModel, raw: Any, labels: list[str], unknown_rows: int = 0) -> None:
        """Count predicted rows: documents, a table, or sparse rows."""
        self.rows += len(labels)
        self.unknown_rows += unknown_rows
        self.labels.update(labels)
        if model.kind == "text":
            words = [word for document in raw for word in model.words_of(document)]
            self.words = (self.words or 0) + len(words)
            self.unknown_words += len(words) - sum(map(model.places.__contains__, words))
        elif model.kind == "table":
            self.cells = (self.cells or 0) + raw.num_rows * raw.num_columns
            self.missing_cells += sum(column.null_count for column in raw.columns)


class Metrics:
    """Counters, a gauge and a histogram in a registry of their own."""

    def __init__(self) -> None:
        # The global registry would count two services of one process together.
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "maxdisc_request_seconds",
            "Time to answer, by path.",
            ["path"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._counters = {
            name: Counter(name, meaning, labels, registry=self._registry)
            for name, (meaning, labels) in COUNTERS.items()
        }
        self._models = Gauge(
            "maxdisc_model_info",
            "The models that are served.",
            ["model", "kind", "checksum"],
            registry=self._registry,
        )

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Increase a counter."""
        counter = self._counters[name]
        (counter.labels(**_encodable(labels)) if labels else counter).inc(amount)

    def add_predictions(self, model: str, tally: Tally) -> None:
        """Count predictions and input statistics."""
        self.add("maxdisc_rows_total", tally.rows, model=model)
        self.add("maxdisc_unknown_rows_total", tally.unknown_rows, model=model)
        for label, rows in tally.labels.items():
            self.add("maxdisc_predicted_rows_total", rows, **{"model": model, "class": label})
        if tally.words is not None:
            self.add("maxdisc_words_total", tally.words, model=model)
            self.add("maxdisc_unknown_words_total", tally.unknown_words, model=model)
        if tally.cells is not None:
            self.add("maxdisc_cells_total", tally.cells, model=model)
            self.add("maxdisc_missing_cells_total", tally.missing_cells, model=model)

    def set_models(self, models: Sequence[Mapping[str, str]]) -> None:
        """Replace the models that are served."""
        self._models.clear()
        for labels in models:
            self._models.labels(**_encodable(labels)).set(1)

    def took(self, path: str, seconds: float) -> None:
        """Count the time of a request."""
        self._seconds.labels(path=path).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


def _encodable(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels that UTF-8 can encode: the name of a file need not be UTF-8."""
    return {name: value.encode("utf-8", "replace").decode() for name, value in labels.items()}
