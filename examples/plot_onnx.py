"""
Export to ONNX
==============

A fitted model consists of a few matrix products. As an ONNX graph it runs in any ONNX runtime, from C++ to JavaScript, without Python and maxdisc.

It needs the extra ``onnx``, and a runtime: ``python -m pip install '.[onnx]' onnxruntime``.
"""

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits

from maxdisc import MaxDiscClassifier
from maxdisc.adapters.onnx import to_onnx

X, y = load_digits(return_X_y=True)
model = MaxDiscClassifier("gaussian").fit(X[:900], y[:900])
graph = to_onnx(model)
print(f"{len(graph.graph.node)} operations, {graph.ByteSize() / 1000:.0f} kB")

# %%
# The runtime does not need maxdisc. It takes the graph and rows, and returns the same labels and probabilities:

session = onnxruntime.InferenceSession(graph.SerializeToString())
(name,) = [entry.name for entry in session.get_inputs()]
labels, probabilities = session.run(None, {name: X[900:]})
ours = model.predict_proba(X[900:])
print(f"same labels: {(labels == model.predict(X[900:])).all()}")
print(f"largest difference of the probabilities: {np.abs(probabilities - ours).max():.1e}")

# %%
# On a logarithmic scale, even differences of very small probabilities would be visible:

_, axes = plt.subplots(figsize=(4, 4), layout="constrained")
axes.loglog(np.maximum(ours, 1e-12), np.maximum(probabilities, 1e-12), ".", alpha=0.3)
axes.set(xlabel="probability here", ylabel="probability of the graph", aspect="equal")

# %%
# On the command line, use ``maxdisc export model.maxdisc -o model.onnx``.
