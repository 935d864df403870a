"""Time to save and to load a model of 100,000 features and 20 classes, beside the time to fit it.

Run with ``make bench-model-file``. All features are kept, which makes the largest file.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

from memory import zipf_rows

from maxdisc import MaxDiscClassifier, load, save

HERE = Path(__file__).resolve().parent
REPEATS = 5


def best(work):
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def main() -> None:
    X, y = zipf_rows(20_000, 100_000, 20, 150)
    found, _ = best(lambda: MaxDiscClassifier(evidence="raw").fit(X, y))
    given, model = best(lambda: MaxDiscClassifier(n_features="all", evidence="raw", smoothing=0.1).fit(X, y))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.maxdisc")
        saved, _ = best(lambda: save(model, path))
        loaded, again = best(lambda: load(path))
        size = os.path.getsize(path)
    assert (again.predict_joint_log_proba(X[:500]) == model.predict_joint_log_proba(X[:500])).all()
    seconds = {"fit, K chosen": found, "fit, all features": given, "save": saved, "load": loaded}
    for name, took in seconds.items():
        print(f"{name:20} {took:7.3f} s")
    print(f"{'file':20} {size / 1e6:7.1f} MB; load takes {loaded / found:.3f} of the fit")
    record = {
        "command": "make bench-model-file",
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "versions": {p: version(p) for p in ("maxdisc", "numpy", "safetensors")},
        "seconds, best of": REPEATS,
        "seconds": seconds,
        "bytes": size,
    }
    (HERE / "results" / "model_file.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
