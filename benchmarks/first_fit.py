"""CPU time that compilation adds to the first default fit of text: ``make bench-compile``, goal 12 s.

The same fit runs in a process with an empty cache of machine code, and then in processes that find it. Their
whole CPU time counts, imports included; the least of several warm ones. One thread. The documents are the
docstrings that every Python installation has.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
from datetime import date
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOAL_SECONDS = 12.0
WARM_RUNS = 3
#: The fit, and then how many kernels were compiled.
FIT = """
from maxdisc import MaxDiscClassifier
from maxdisc.datasets import load_docstrings
from maxdisc.numerics.compiling import compiled_so_far
documents = load_docstrings()
model = MaxDiscClassifier().fit(documents.data, documents.target)
model.predict_proba(documents.data[:100])
print(len(documents.data), compiled_so_far()[0])
"""


def fit_once(cache: str) -> tuple[float, int, int]:
    """Fit in a process of its own; return its CPU seconds and the numbers of documents and of kernels."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    one_thread = {"OMP_NUM_THREADS": "1", "MAXDISC_NUM_THREADS": "1", "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", FIT]
    done = subprocess.run(command, env=os.environ | one_thread, check=True, stdout=subprocess.PIPE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    n_documents, n_kernels = map(int, done.stdout.split())
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, n_documents, n_kernels


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        cold, n_documents, n_kernels = fit_once(cache)
        warm = [fit_once(cache) for _ in range(WARM_RUNS)]
    assert all(compiled == 0 for _, _, compiled in warm), "a warm fit has compiled something"
    least = min(seconds for seconds, _, _ in warm)
    print(f"{n_documents:,} documents, {n_kernels} kernels compiled")
    print(f"empty cache {cold:6.1f} s of CPU")
    print(f"warm        {least:6.1f} s of CPU")
    print(f"compilation {cold - least:6.1f} s of CPU, goal {GOAL_SECONDS:g}")
    record = {
        "command": "make bench-compile",
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in ("maxdisc", "numba", "llvmlite", "numpy")},
        "documents": n_documents,
        "kernels compiled": n_kernels,
        "CPU s, empty cache": cold,
        "CPU s, warm, best of 3": least,
    }
    (HERE / "results" / "first_fit.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
