"""Load on a real service of a 20 Newsgroups model: batches, single requests at a fixed rate, a soak."""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import tempfile
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from service import Running

JSON = {"Content-Type": "application/json"}
BATCH, RATE, PER_SECOND = 32, 200.0, 2000.0


class Client:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, texts: list[str]) -> int:
        """The status of a request; 0 if there is none."""
        try:
            self._connection.request("POST", "/predict", json.dumps({"texts": texts}), JSON)
            answer = self._connection.getresponse()
            answer.read()
            return answer.status
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0


def _batches(port: int, texts: list[str], seconds: float, seed: int, out: Any) -> None:
    rng, client = np.random.default_rng(seed), Client(port)
    done, errors, began = 0, 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        some = [texts[i] for i in rng.integers(0, len(texts), BATCH)]
        good = client.ask(some) == 200
        done, errors = done + good * BATCH, errors + (not good)
    out.put((done, errors))


def batches(port: int, texts: list[str], seconds: float, clients: int = 4) -> dict[str, float]:
    """Documents per second in batches of 32, each client asking again as soon as it has its answer."""
    context = multiprocessing.get_context("spawn")
    out: Any = context.SimpleQueue()
    workers = [
        context.Process(target=_batches, args=(port, texts, seconds, seed, out)) for seed in range(clients)
    ]
    for worker in workers:
        worker.start()
    found = [out.get() for _ in workers]
    for worker in workers:
        worker.join()
    done, errors = (sum(each) for each in zip(*found, strict=True))
    return {
        "clients": clients,
        "requests": done // BATCH + errors,
        "documents_per_second": round(done / seconds),
        "errors": errors,
    }


def open_loop(
    port: int, texts: list[str], seconds: float, rate: float, size: int, clients: int = 32
) -> dict[str, Any]:
    """Latencies at a fixed rate: requests are due when they are due, whether others are done or not.

    A request that begins late because all clients wait has waited: its time runs from when it was due.
    """
    rng = np.random.default_rng(0)
    due: SimpleQueue[tuple[float, list[str]] | None] = SimpleQueue()
    took: list[float] = []
    statuses: list[int] = []

    def work() -> None:
        client = Client(port)
        while (job := due.get()) is not None:
            at, some = job
            statuses.append(client.ask(some))
            took.append(time.perf_counter() - at)

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    began = time.perf_counter()
    for k in range(int(seconds * rate)):
        at = began + k / rate
        if (wait := at - time.perf_counter()) > 0:
            time.sleep(wait)
        due.put((at, [texts[i] for i in rng.integers(0, len(texts), size)]))
    for _ in threads:
        due.put(None)
    for thread in threads:
        thread.join()
    return {
        "rate": rate,
        "batch": size,
        "requests": len(took),
        **quantiles(took),
        "errors": len(took) - statuses.count(200),
        "took": took,
    }


def quantiles(took: list[float]) -> dict[str, float]:
    """Of seconds, in milliseconds."""
    half, most, last = np.quantile(np.array(took) * 1000, [0.5, 0.99, 1.0]).round(2).tolist()
    return {"p50_ms": half, "p99_ms": most, "max_ms": last}


def _loop(port: int, texts: list[str], seconds: float, rate: float, size: int, out: Any) -> None:
    out.put(open_loop(port, texts, seconds, rate, size))


def stolen_ms() -> int | None:
    """For how long the host has given this machine's cores to others so far; None where nobody counts it."""
    try:
        jiffies = int(Path("/proc/stat").read_text().split(maxsplit=9)[8])
    except (OSError, IndexError, ValueError):
        return None
    return 1000 * jiffies // os.sysconf("SC_CLK_TCK")


def singles(port: int, texts: list[str], seconds: float, windows: int) -> dict[str, Any]:
    """Single requests at a fixed rate, window after window, and what the host took away in each.

    While cores are taken away nobody is answered: a fifth of a second of it makes a hundredth of the requests
    of a window late, whatever the service does.
    """
    took, each, errors = [], [], 0
    for _ in range(windows):
        before = stolen_ms()
        found = beside(port, texts, seconds, RATE, 1)
        after = stolen_ms()
        took += found["took"]
        errors += found["errors"]
        stolen = None if before is None or after is None else after - before
        each.append({"p99_ms": found["p99_ms"], "stolen_ms": stolen})
    p99 = sorted(window["p99_ms"] for window in each)
    return {
        "rate": RATE,
        "batch": 1,
        "requests": len(took),
        **quantiles(took),
        "errors": errors,
        "seconds_of_a_window": seconds,
        "windows": each,
        "p99_ms_of_the_median_window": round(float(np.median(p99)), 2),
    }


def beside(port: int, texts: list[str], seconds: float, rate: float, size: int) -> dict[str, Any]:
    """The same from a process of its own, so that nothing else there is waited for."""
    context = multiprocessing.get_context("spawn")
    out: Any = context.SimpleQueue()
    worker = context.Process(target=_loop, args=(port, texts, seconds, rate, size, out))
    worker.start()
    found = out.get()
    worker.join()
    return dict(found)


def soak(service: Running, texts: list[str], minutes: float) -> dict[str, Any]:
    """Half the load, half of it single documents and half of it batches, and the memory over time."""
    parts, memory = [], [service.memory()]
    began = time.monotonic()
    while time.monotonic() - began < 60 * minutes:
        length = min(30.0, max(1.0, 60 * minutes - (time.monotonic() - began)))
        context = multiprocessing.get_context("spawn")
        out: Any = context.SimpleQueue()
        loads = ((RATE / 2, 1), (PER_SECOND / 2 / BATCH, BATCH))
        workers = [
            context.Process(target=_loop, args=(service.port, texts, length, rate, size, out))
            for rate, size in loads
        ]
        for worker in workers:
            worker.start()
        parts += [out.get() for _ in workers]
        for worker in workers:
            worker.join()
        memory.append(service.memory())
    late = memory[len(memory) // 3 :]
    return {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "requests": sum(part["requests"] for part in parts),
        "errors": sum(part["errors"] for part in parts),
        "worst_p99_ms_of_singles": max(part["p99_ms"] for part in parts if part["batch"] == 1),
        "rss_mb": memory,
        "rss_mb_growth_after_a_third": round(late[-1] - late[0], 1),
    }


def main() -> None:
    # Here, as the processes of clients read this file, too, and need none of it.
    from service import newsgroups_model, served
    from timing import stamp

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=0.5, help="of the soak; 30 for the real one")
    parser.add_argument("--seconds", type=float, default=20, help="of each of the other measurements")
    parser.add_argument(
        "--model", type=Path, help="a model with documents beside it, as an earlier run left it"
    )
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/serving.json"))
    given = parser.parse_args()
    record: dict[str, Any] = {"stamp": stamp(f"python benchmarks/serving.py --minutes {given.minutes:g}")}
    with tempfile.TemporaryDirectory() as folder:
        model = given.model or Path(folder, "newsgroups.maxdisc")
        if not model.exists() or not model.with_suffix(".json").exists():
            record["model"] = newsgroups_model(model)
        texts = json.loads(model.with_suffix(".json").read_text())
        record["document_characters"] = round(float(np.mean([len(text) for text in texts])))
        with served(Path(folder), [model], "--quiet") as service:
            beside(service.port, texts, 3, 50, 1)  # connections and pages are warm
            for name, work in (
                ("batches_of_32", lambda: batches(service.port, texts, given.seconds)),
                ("single_at_200_per_second", lambda: singles(service.port, texts, given.seconds / 2, 6)),
            ):
                before = service.cpu_seconds()
                found = work()
                # What a request takes of a core does not depend on what else the machine does.
                per_request = (service.cpu_seconds() - before) / max(found["requests"], 1)
                record[name] = {**found, "cpu_ms_per_request": round(1000 * per_request, 2)}
            print(json.dumps(record, indent=1), flush=True)
            given.json.write_text(json.dumps(record, indent=1) + "\n")
            if given.minutes > 0:
                record["soak_at_half_load"] = soak(service, texts, given.minutes)
            events = [line["event"] for line in service.events()]
            record["defects"] = events.count("defect")
    record["goals"] = {
        "documents_per_second": [record["batches_of_32"]["documents_per_second"], PER_SECOND],
        "p99_ms": [record["single_at_200_per_second"]["p99_ms"], 25.0],
        "p99_ms_of_the_median_window": [
            record["single_at_200_per_second"]["p99_ms_of_the_median_window"],
            25.0,
        ],
    }
    print(json.dumps(record, indent=1))
    given.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
