"""
Serving a model
===============

``maxdisc serve`` starts an HTTP service. This example fits and saves a model, starts the service on a free port of this machine, sends requests, and stops it.

It needs the extra ``serve``: ``python -m pip install '.[serve]'``.
"""

import atexit
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from maxdisc import MaxDiscClassifier, save

data = load_breast_cancer(as_frame=True)
model = MaxDiscClassifier("gaussian").fit(data.data, data.target_names[data.target])
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "tumours.maxdisc"
save(model, file)

# %%
# In a shell: ``maxdisc serve tumours.maxdisc --port 8000``. By default it accepts connections from this machine only. ``/readyz`` answers when it is ready.

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
service = subprocess.Popen(
    [sys.executable, "-m", "maxdisc", "serve", str(file), "--port", str(port)],
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
)
atexit.register(service.kill)  # whatever happens below


def ask(path, question=None):
    """The answer of the service, as Python reads JSON."""
    body = None if question is None else json.dumps(question).encode()
    request = Request(f"http://127.0.0.1:{port}{path}", body, {"Content-Type": "application/json"})
    with urlopen(request, timeout=10) as answer:
        return json.load(answer)


ready = None
while ready is None:
    try:
        ready = ask("/readyz")
    except (URLError, ConnectionError):
        if service.poll() is not None:
            raise RuntimeError("the service did not start") from None
        time.sleep(0.1)
print(ready)

# %%
# Predict a batch of rows. (For a text model, send ``{"texts": [...]}``.) Cells that are left out are missing: the third row lacks a
# third of its measurements.

rows = data.data.iloc[[0, 1, 19]].to_dict("records")
rows[2] = {name: value for name, value in rows[2].items() if not name.startswith("mean")}
for said in ask("/predict", {"rows": rows})["predictions"]:
    classes = ", ".join(f"{c['label']} {c['probability']:.3f}" for c in said["classes"])
    print(f"{said['label']:10} {classes}")

# %%
# Explain a prediction: the log-odds of the label against the runner-up, by feature, which sum to the total.

why = ask("/explain", {"row": rows[0], "n": 8})
names, odds = [f["name"] for f in why["features"]], [f["odds"] for f in why["features"]]
_, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.barh(names[::-1], odds[::-1], color=["tab:blue" if o > 0 else "tab:orange" for o in odds[::-1]])
axes.set(xlabel=f"log-odds for {why['first']} against {why['second']}")
print(f"total {why['total']:.2f} = {why['prior']:.2f} + {sum(odds):.2f} + {why['rest']:.2f}")

# %%
# The web page at ``/`` shows the same. When the service is stopped, it finishes requests in progress.

service.terminate()
print(f"stopped, exit code {service.wait(timeout=30)}")
folder.cleanup()
