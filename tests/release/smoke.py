"""What an installed copy must do, in an environment that has nothing but it: ``python smoke.py VERSION``.

It imports nothing of the repository, and is run in a folder of its own.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

COMMAND = [str(Path(sys.executable).parent / "maxdisc")]
#: How long a service may take to begin, on a machine with much else to do.
PATIENCE = 90.0


def run(*arguments):
    """A command; its standard output."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"maxdisc {' '.join(arguments)}: {done.stderr}{done.stdout}"
    return done.stdout


def check_version(expected):
    """One version, wherever it is asked for."""
    import maxdisc

    assert "site-packages" in maxdisc.__file__, f"{maxdisc.__file__} is not installed"
    assert maxdisc.__version__ == expected, maxdisc.__version__
    assert run("--version").split() == ["maxdisc", expected]
    assert (Path(maxdisc.__file__).parent / "py.typed").is_file()


def check_library():
    """Fit, save, load, predict."""
    from sklearn.datasets import load_breast_cancer

    import maxdisc

    X, y = load_breast_cancer(return_X_y=True)
    model = maxdisc.MaxDiscClassifier().fit(X, y)
    assert model.score(X, y) > 0.9
    maxdisc.save(model, "cancer.maxdisc")
    assert (maxdisc.load("cancer.maxdisc").predict(X) == model.predict(X)).all()


def check_commands():
    """Fit, predict and report, from one CSV file to a page."""
    topics = {"space": "orbit moon rocket", "cooking": "salt butter oven"}
    with open("documents.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label"])
        for place in range(60):
            label = list(topics)[place % 2]
            rows.writerow([f"{topics[label]} news number {place % 7}", label])
    run("fit", "documents.csv", "--text", "text", "--label", "label", "-o", "topics.maxdisc", "-q")
    run("predict", "topics.maxdisc", "documents.csv", "-o", "answers.csv")
    with open("answers.csv", newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 60
    assert json.loads(run("info", "topics.maxdisc", "--json"))["steps"]
    run("report", "topics.maxdisc", "--data", "documents.csv", "-o", "report.html")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "<style>" in page, "the report has lost its style sheet"
    assert "rocket" in page


def check_onnx():
    """A graph, where its extra is installed."""
    if find_spec("skl2onnx") is None or find_spec("maxdisc.adapters.onnx") is None:
        return "left out: needs the extra onnx"
    run("export", "topics.maxdisc", "-o", "topics.onnx")
    assert Path("topics.onnx").stat().st_size > 0
    return None


def check_service():
    """The service begins, says so, has its page, and ends when it is told to; where there is one."""
    if find_spec("maxdisc.serve") is None or find_spec("fastapi") is None:
        return "left out: there is no service, or its extra is missing"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    service = subprocess.Popen(
        [*COMMAND, "serve", "topics.maxdisc", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        _wait(f"http://127.0.0.1:{port}/readyz", service)
        for path in ("/healthz", "/"):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
                assert answer.status == 200, path
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/predict",
            data=json.dumps({"texts": ["a rocket to the moon"]}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert b"space" in answer.read()
    finally:
        service.send_signal(signal.SIGTERM)
        service.communicate(timeout=PATIENCE)
    return None


def _wait(address, service):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert service.poll() is None, f"the service ended: {service.stderr.read().decode()}"
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            urllib.request.urlopen(address, timeout=5).close()
            return
        time.sleep(0.2)
    raise AssertionError(f"{address} did not answer")


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    check_version(sys.argv[1])
    for check in (check_library, check_commands, check_onnx, check_service):
        print(f"{check.__name__}: {check() or 'ok'}", flush=True)
