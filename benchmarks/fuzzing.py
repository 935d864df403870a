"""Fuzzed requests to a real service: only 2xx and clear 4xx, no traceback, the same answers afterwards."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import re
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Any

from service import Running, served, small_models
from timing import stamp

CLEAR = {100, 200, 400, 404, 405, 408, 413, 415, 421, 422, 431}
JSON = {"Content-Type": "application/json"}
LARGE = 10_000_000
Request = tuple[str, str, bytes, dict[str, str]]

KNOWN: list[tuple[str, Any]] = [
    ("/predict", {"texts": ["the shuttle", "", "goalie 😀"], "top": 0}),
    ("/explain", {"text": "the shuttle and a goalie", "n": 5}),
    ("/predict?model=table", {"rows": [{"age": 61, "smokes": True, "ward": "n"}, {}]}),
    ("/explain?model=table", {"row": {"age": 40, "ward": "never"}}),
    ("/predict?model=vectors", {"rows": [{"x0": 3}, {"x1": 0.5}]}),
]


def junk(rng: random.Random, depth: int = 0) -> Any:
    """Some JSON value, as strange as they come."""
    kinds: list[Callable[[], Any]] = [
        lambda: None,
        lambda: rng.random() < 0.5,
        lambda: rng.choice([0, -1, 10**18, 10**400, -(2**63), 1e308, -0.0, 1e-320]),
        lambda: rng.uniform(-1e6, 1e6),
        lambda: "".join(chr(rng.choice([0, 9, 65, 233, 0x3C3, 0x130, 0x1F600, 0xFFFF])) for _ in range(8)),
        lambda: "orbit " * rng.randrange(60),
    ]
    if depth < 4:
        kinds.append(lambda: [junk(rng, depth + 1) for _ in range(rng.randrange(4))])
        kinds.append(lambda: {name(rng): junk(rng, depth + 1) for _ in range(rng.randrange(4))})
    return rng.choice(kinds)()


def name(rng: random.Random) -> str:
    return rng.choice(
        [
            "texts",
            "rows",
            "text",
            "row",
            "top",
            "unknown",
            "n",
            "first",
            "second",
            "age",
            "smokes",
            "ward",
            "x0",
            "",
        ]
    )


def shaped(rng: random.Random) -> Any:
    """A body of about the right shape."""
    value = lambda: junk(rng, 3)  # noqa: E731
    return rng.choice(
        [
            lambda: {"texts": [value() for _ in range(rng.randrange(5))], name(rng): value()},
            lambda: {"texts": ["orbit"] * rng.choice([1, 100, 20_000]), "top": value()},
            lambda: {"rows": [{name(rng): value() for _ in range(3)} for _ in range(rng.randrange(4))]},
            lambda: {"rows": [{"age": value(), "smokes": value(), "ward": value()}]},
            lambda: {"text": value(), "n": value(), "first": value()},
            lambda: {
                "row": {"age": value(), "ward": value()},
                "second": rng.choice(["ill", "space", value()]),
            },
            lambda: junk(rng),
        ]
    )()


def damaged(rng: random.Random, body: bytes) -> bytes:
    """With some bytes changed, cut off, or twice."""
    data = bytearray(body)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        how = rng.randrange(4)
        if how == 0:
            data[at:at] = rng.choice(
                [b"\xff", b"\x00", b"{", b"]", b'"', b"NaN", b"1e999", b"\\ud800", b"-Infinity"]
            )
        elif how == 1:
            del data[at:]
        elif how == 2:
            del data[at : at + rng.randrange(5)]
        else:
            data += data[at : at + 50]
    return bytes(data)


def nested(rng: random.Random) -> bytes:
    depth, (left, right) = rng.choice([50, 1000, 100_000]), rng.choice([(b"[", b"]"), (b'{"a":', b"}")])
    inside = left * depth + (b"1" + right * depth if rng.random() < 0.7 else b"")
    return rng.choice([inside, b'{"texts":' + inside + b"}", b'{"rows":[{"age":' + inside + b"}]}"])


def delimited(rng: random.Random) -> bytes:
    cell = lambda: rng.choice(["orbit", "61", "n", '"', "", "n/a", "é", "1e999", "a,b", "\x00", "true"])  # noqa: E731
    head = rng.choice(["text", "age,smokes,ward", "ward,age", "", '"', "text,text", "text;age"])
    rows = [",".join(cell() for _ in range(head.count(",") + 1)) for _ in range(rng.randrange(6))]
    text = "\n".join([head, *rows])
    return damaged(rng, text.encode()) if rng.random() < 0.3 and text else text.encode()


def made_up(rng: random.Random) -> tuple[str, Request]:
    """What kind of request it is, and the request."""
    path = rng.choice(
        ["/predict", "/explain", "/predict?model=table", "/explain?model=table", "/predict?model=vectors"]
    )
    draw = rng.random()
    if draw < 0.35:
        return "wrong types", ("POST", path, json.dumps(shaped(rng)).encode(), JSON)
    if draw < 0.65:
        good = json.dumps(rng.choice([body for _, body in KNOWN]), ensure_ascii=False).encode()
        return "malformed JSON, NaN, invalid UTF-8", ("POST", path, damaged(rng, good), JSON)
    if draw < 0.75:
        known, body = rng.choice(KNOWN)
        return "good", ("POST", known, json.dumps(body).encode(), JSON)
    if draw < 0.80:
        return "deep nesting", ("POST", path, nested(rng), JSON)
    if draw < 0.88:
        where = rng.choice(["/predict.csv", "/predict.csv?model=table", "/predict.csv?model=vectors"])
        return "CSV", ("POST", where, delimited(rng), {"Content-Type": "text/csv"})
    if draw < 0.96:
        query = rng.choice(["offset", "limit", "class", "search", "model", "feature"])
        value = rng.choice(
            ["", "-1", "9" * 30, "%00", "%ff", "orbit", "1e5", "a" * 5000, "space", "table", "age"]
        )
        where = rng.choice(
            ["/ranking", "/density", "/model", "/models", "/healthz", "/nothing", "/static/x", "/"]
        )
        return "queries", (rng.choice(["GET", "GET", "PUT", "HEAD"]), f"{where}?{query}={value}", b"", {})
    kind = rng.choice(
        ["text/plain", "application/json; charset=latin-1", "", "application/x-www-form-urlencoded"]
    )
    headers = {"Content-Type": kind, "Content-Encoding": rng.choice(["gzip", "identity"])}
    return "types and methods", (rng.choice(["POST", "PATCH", "OPTIONS"]), path, b"{}", headers)


class Findings:
    """What came back, by kind of request; and what must not."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}
        self.wrong: list[str] = []
        self.n = 0

    def note(self, kind: str, status: int, body: bytes, retry: str | None, what: str) -> None:
        self.n += 1
        self.counts.setdefault(kind, Counter())[str(status)] += 1
        overload = status == 503 and retry is not None
        if status not in CLEAR and not overload:
            self.wrong.append(f"{kind}: {status} for {what[:200]}")
        elif status >= 400 and body and not _is_clear(body):
            self.wrong.append(f"{kind}: {status} without one line of reason for {what[:200]}: {body[:100]!r}")


def _is_clear(body: bytes) -> bool:
    try:
        told = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(told, str) and "\n" not in told and 0 < len(told) <= 300


def fuzz(service: Running, n: int, seed: int, found: Findings) -> None:
    """So many made-up requests, one after the other, over connections that are kept."""
    rng, connection = random.Random(seed), service.connection()
    for _ in range(n):
        kind, (method, path, body, headers) = made_up(rng)
        for attempt in (1, 2):
            try:
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                content = answer.read()
                break
            except (http.client.HTTPException, OSError) as error:
                connection.close()
                # A connection that was kept may have been closed meanwhile; a new one may not.
                if attempt == 2:
                    found.wrong.append(f"{kind}: {error!r} for {method} {path[:100]} {body[:100]!r}")
        else:
            continue
        found.note(
            kind, answer.status, content, answer.headers["Retry-After"], f"{method} {path} {body[:100]!r}"
        )


def large(service: Running, n: int, found: Findings) -> None:
    """Bodies of 10 MB."""
    body = json.dumps({"texts": ["a" * LARGE]}).encode()
    for _ in range(n):
        connection = service.connection()
        connection.request("POST", "/predict", body, JSON)
        answer = connection.getresponse()
        found.note("10 MB bodies", answer.status, answer.read(), answer.headers["Retry-After"], "10 MB")
        connection.close()


def slow(service: Running, n: int, found: Findings) -> None:
    """Senders that stop in the middle of a head or a body."""
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\n"
    head += b"Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
    for begin in range(0, n, 100):
        waiting = []
        for i in range(begin, min(begin + 100, n)):
            connection = socket.create_connection(("127.0.0.1", service.port), timeout=60)
            connection.sendall(head if i % 2 else head[: 20 + i % 50])
            waiting.append(connection)
        for connection in waiting:
            with connection:
                data = b""
                while piece := connection.recv(65536):
                    data += piece
            status = int(data.split()[1]) if data else 0
            found.note("slow senders", status, data.partition(b"\r\n\r\n")[2], None, "a slow sender")


def raw(service: Running, n: int, found: Findings) -> None:
    """Requests that are damaged as bytes: heads, framing, several on one connection."""
    rng = random.Random(0)
    body = json.dumps(KNOWN[0][1]).encode()
    post = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    whole = [
        post + b"Content-Length: %d\r\n\r\n" % len(body) + body,
        post + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://localhost/model HTTP/1.0\r\n\r\n",
    ]
    strange = [
        *(
            b"\r",
            b"\n",
            b"\r\n",
            b"\r\n ",
            b"\0",
            b"\x0b",
            b" ",
            b"\t",
            b":",
            b"\xff",
            b"%",
            b"/",
            b"#",
            b"9" * 30,
        ),
        *(b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n"),
        *(b"Connection: close\r\n", b"Upgrade: h2c\r\n", b"HTTP/2.0", b"X: " + b"a" * 20_000 + b"\r\n"),
    ]
    for _ in range(n):
        data = bytearray(b"".join(rng.choices(whole, k=rng.randrange(1, 4))))
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(data) + 1)
            end = at + rng.randrange(3) if rng.random() < 0.8 else len(data)
            data[at:end] = rng.choice(strange) if rng.random() < 0.8 else b""
        told = b""
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
            # It may be closed before all is sent.
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while piece := connection.recv(65536):
                    told += piece
        statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", told)]
        for status in statuses[:-1]:
            found.note("raw bytes", status, b"", None, repr(bytes(data[:200])))
        if statuses:
            last = told.rpartition(b"\r\n\r\n")[2]
            found.note("raw bytes", statuses[-1], last, None, repr(bytes(data[:200])))


def by_schema(service: Running, n: int, found: Findings) -> None:
    """Requests that schemathesis makes from our OpenAPI, good ones and bad ones.

    It cannot know what models are called: three of four requests name one that there is.
    """
    import schemathesis
    from hypothesis import HealthCheck, given, settings
    from schemathesis import GenerationMode

    connection, names = service.connection(), cycle(["text", "table", "vectors", None])
    connection.request("GET", "/openapi.json")
    schema = schemathesis.openapi.from_dict(json.loads(connection.getresponse().read()))
    posts, gets = ("/predict", "/explain", "/predict.csv"), ("/ranking", "/density")
    pairs = [*(("POST", path) for path in posts), *(("GET", path) for path in gets)]
    for method, path in pairs:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @given(case=schema[path][method].as_strategy(generation_mode=mode))
            @settings(
                max_examples=max(1, n // (2 * len(pairs))),
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            def ask(case: Any) -> None:
                name = next(names)
                if name is not None:
                    case.query = {**(case.query or {}), "model": name}
                answer = case.call(base_url=f"http://127.0.0.1:{service.port}")
                retry = answer.headers.get("retry-after")
                retry = retry[0] if isinstance(retry, list) else retry
                found.note("schemathesis", answer.status_code, answer.content, retry, f"{method} {path}")  # noqa: B023

            ask()


def answers(service: Running) -> list[bytes]:
    """What the service says to requests that are always the same."""
    out = []
    for path, body in KNOWN:
        connection = service.connection()
        connection.request("POST", path, json.dumps(body), JSON)
        out.append(connection.getresponse().read())
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--by-schema", type=int, default=20_000)
    parser.add_argument("--large", type=int, default=50)
    parser.add_argument("--slow", type=int, default=400)
    parser.add_argument("--raw", type=int, default=5000)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/fuzzing.json"))
    given = parser.parse_args()
    record: dict[str, Any] = {"stamp": stamp("make fuzz-serve")}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        models = small_models(Path(folder))
        with served(Path(folder), models, "--max-seconds", "5") as service:
            before, memory = answers(service), service.memory()
            found = Findings()
            by_schema(service, given.by_schema, found)
            large(service, given.large, found)
            slow(service, given.slow, found)
            raw(service, given.raw, found)
            left, workers = given.requests - found.n, 8
            with ThreadPoolExecutor(workers) as pool:
                for seed in range(workers):
                    pool.submit(fuzz, service, max(0, left // workers + (seed < left % workers)), seed, found)
            same = answers(service) == before
            log = service.log.read_text(errors="replace")
            events = Counter(line["event"] for line in service.events())
            alive = service.process.poll() is None
            record |= {
                "requests": found.n,
                "seconds": round(time.monotonic() - began),
                "statuses": {kind: dict(sorted(counts.items())) for kind, counts in found.counts.items()},
                "wrong": len(found.wrong),
                "overloaded": sum(counts["503"] for counts in found.counts.values()),
                "tracebacks": log.count("Traceback") + events["defect"],
                "same_answers": same,
                "alive": alive,
                "rss_mb": {"before": memory, "after": service.memory()},
            }
    print(json.dumps(record, indent=1))
    for line in found.wrong[:20]:
        print(line)
    given.json.write_text(json.dumps(record, indent=1) + "\n")
    if found.wrong or record["tracebacks"] or not same or not alive:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
