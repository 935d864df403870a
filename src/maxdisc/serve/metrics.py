"""Counts of what a service did, in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters, gauges and one histogram; used from one thread."""

    #: What is told of each, in the order in which it is told.
    MEANT: Mapping[str, tuple[str, str]] = {
        "maxdisc_requests_total": ("counter", "Requests, by path and status."),
        "maxdisc_rows_total": ("counter", "Rows and documents predicted."),
        "maxdisc_unknown_rows_total": ("counter", "Of them, rows that were called unknown as asked for."),
        "maxdisc_reloads_total": ("counter", "Model files that were replaced, by how it ended."),
        "maxdisc_refused_busy_total": ("counter", "Requests refused because too many waited."),
        "maxdisc_timeouts_total": ("counter", "Requests that took longer than they may."),
        "maxdisc_connections_closed_total": (
            "counter",
            "Connections closed by the service: malformed or slow requests, no room, to make room.",
        ),
        "maxdisc_model_info": ("gauge", "The models that are served."),
    }

    def __init__(self) -> None:
        self._values: dict[str, dict[Labels, float]] = {name: {} for name in self.MEANT}
        self._seconds: dict[str, tuple[list[int], list[float]]] = {}

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count."""
        key = tuple(labels.items())
        self._values[name][key] = self._values[name].get(key, 0) + amount

    def replace(self, name: str, values: Sequence[Mapping[str, str]]) -> None:
        """Let a gauge have these labels, each with the value 1."""
        self._values[name] = {tuple(labels.items()): 1 for labels in values}

    def took(self, path: str, seconds: float) -> None:
        """Count the time of a request."""
        counts, total = self._seconds.setdefault(path, ([0] * (len(BUCKETS) + 1), [0.0]))
        counts[bisect_left(BUCKETS, seconds)] += 1
        total[0] += seconds

    def text(self) -> str:
        """Return all of it."""
        lines = [line for name in self.MEANT for line in self._told(name)]
        return "\n".join([*self._histogram(), *lines]) + "\n"

    def _told(self, name: str) -> Iterator[str]:
        kind, meaning = self.MEANT[name]
        yield f"# HELP {name} {meaning}"
        yield f"# TYPE {name} {kind}"
        for labels, value in self._values[name].items():
            yield f"{name}{_labels(labels)} {value:.17g}"

    def _histogram(self) -> Iterator[str]:
        name = "maxdisc_request_seconds"
        yield f"# HELP {name} Time to answer, by path."
        yield f"# TYPE {name} histogram"
        for path, (counts, total) in self._seconds.items():
            seen = 0
            for limit, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
                seen += count
                yield f"{name}_bucket{_labels((('path', path), ('le', limit)))} {seen}"
            yield f"{name}_sum{_labels((('path', path),))} {total[0]:.9g}"
            yield f"{name}_count{_labels((('path', path),))} {seen}"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    plain = value.encode("utf-8", "replace").decode()
    return plain.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
