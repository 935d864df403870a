"""Peak memory and time of ``maxdisc fit --stream``, for few and for many generated short documents.

Run with ``make bench-stream``, or ``python benchmarks/stream.py --sizes 50000 200000`` for less. Documents
are written to Parquet files in a temporary folder; each fit is a process of its own, whose peak is the
resident memory that the system reports. Prints a table; with ``--json FILE`` also stores it.
The goal: the largest peak is within 1.2 times that of the smallest; time for a document does not grow.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import maxdisc

N_WORDS, N_CLASSES, LENGTH = 30_000, 5, 12
AT_A_TIME = 50_000
#: Rows in a file; the files of a set are read by a glob.
IN_A_FILE = 1_000_000


def documents(n, rng):
    """Texts of a dozen words: frequencies as in language, and every seventh word tells of the class."""
    words = np.array([f"w{number:05d}" for number in range(N_WORDS)], dtype=object)
    y = rng.integers(0, N_CLASSES, n)
    drawn = np.minimum((rng.pareto(0.9, (n, LENGTH)) * 20).astype(np.int64), N_WORDS - 1)
    telling = rng.random((n, LENGTH)) < 1 / 7
    drawn = np.where(telling, 300 + drawn % 200 * N_CLASSES + y[:, None], drawn)
    return pa.table({"text": [" ".join(row) for row in words[drawn]], "topic": [f"topic {c}" for c in y]})


def write_documents(folder, n, seed=0):
    """Files of at most a million documents; returns the bytes that they take."""
    rng = np.random.default_rng(seed)
    for first in range(0, n, IN_A_FILE):
        here = min(IN_A_FILE, n - first)
        path = folder / f"part-{first // IN_A_FILE:03d}.parquet"
        with pq.ParquetWriter(path, documents(1, rng).schema) as writer:
            for start in range(0, here, AT_A_TIME):
                writer.write_table(documents(min(AT_A_TIME, here - start), rng))
    return sum(path.stat().st_size for path in folder.iterdir())


def fitted(folder, more):
    """Seconds, peak in bytes, and the facts of one fit in a process of its own."""
    command = [sys.executable, "-m", "maxdisc", "fit", str(folder / "*.parquet"), "--text", "text"]
    command += ["--label", "topic", "--stream", "-o", str(folder / "model"), "--force", "--json", "-q", *more]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        output = running.stdout.read()
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - started
    if running.returncode:
        raise SystemExit(f"fit ended with {running.returncode}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return seconds, peak, json.loads(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[500_000, 5_000_000])
    parser.add_argument("--checkpoint", action="store_true", help="keep checkpoints, too")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        warm = Path(temporary, "warm")
        warm.mkdir()
        write_documents(warm, 120_000)
        fitted(warm, [])  # so that no fit that counts has to compile
        print(
            f"{'documents':>12} {'files':>9} {'seconds':>9} {'µs each':>9} {'peak MB':>9} "
            f"{'words':>7} {'K':>7}"
        )
        for size in arguments.sizes:
            folder = Path(temporary, str(size))
            folder.mkdir()
            n_bytes = write_documents(folder, size)
            more = ["--checkpoint", str(folder / "kept")] if arguments.checkpoint else []
            seconds, peak, facts = fitted(folder, more)
            rows.append(
                {
                    "documents": size,
                    "bytes": n_bytes,
                    "seconds": round(seconds, 2),
                    "peak_bytes": peak,
                    "words": facts["features"],
                    "kept": facts["features_kept"],
                    "accuracy": facts["held_out_accuracy"],
                }
            )
            print(
                f"{size:>12,} {n_bytes / 1e6:>6.0f} MB {seconds:>9.1f} {seconds / size * 1e6:>9.2f} "
                f"{peak / 1e6:>9.0f} {facts['features']:>7,} {facts['features_kept']:>7,}"
            )
            for path in folder.iterdir():
                path.unlink()
    few, many = rows[0], rows[-1]
    peaks = many["peak_bytes"] / few["peak_bytes"]
    times = (many["seconds"] / few["seconds"]) / (many["documents"] / few["documents"])
    print(f"peak of the largest: {peaks:.2f} x that of the smallest (goal: 1.2)")
    print(f"time for a document: {times:.2f} x that of the smallest (1.0 is linear)")
    if arguments.json:
        record = {
            "rows": rows,
            "peak_ratio": peaks,
            "time_ratio": times,
            "checkpoint": arguments.checkpoint,
            "threads": os.environ.get("OMP_NUM_THREADS"),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "pyarrow": pa.__version__,
                "maxdisc": maxdisc.__version__,
            },
        }
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
