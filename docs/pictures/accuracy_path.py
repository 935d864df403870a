"""Draw ``accuracy-path.svg``: how the default selects a number of features, on the docstring corpus.

Run with ``python docs/pictures/accuracy_path.py``; needs the docs extra.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

from maxdisc import MaxDiscClassifier
from maxdisc.datasets import load_docstrings


def main() -> None:
    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "maxdisc", "font.size": 10, "svg.fonttype": "none"})
    documents = load_docstrings("package")
    model = MaxDiscClassifier().fit(documents.data, documents.target)
    path, selected = model.path_, model.n_selected_
    figure, axes = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    axes.plot(path.sizes, path.mean_log_loss, color="#2f6db5", linewidth=1.6)
    place = int((path.sizes <= selected).sum()) - 1
    axes.plot(
        [path.sizes[place]],
        [path.mean_log_loss[place]],
        "o",
        color="#c8501e",
        label=f"selected: {selected:,} of {model.n_features_in_:,} features",
    )
    axes.set_xscale("log")
    axes.set_xlabel("features, best first")
    axes.set_ylabel("held-out log-loss")
    axes.set_title(
        f"MaxDiscClassifier().fit(documents, labels): {len(documents.data):,} docstrings of "
        f"{len(set(documents.target))} packages",
        fontsize=10,
    )
    axes.legend(frameon=False, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    figure.savefig(Path(__file__).with_name("accuracy-path.svg"), metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
