"""Compile what the service runs, and keep it in ``NUMBA_CACHE_DIR``: part of building the image."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from maxdisc import MaxDiscClassifier, load, save
from maxdisc.datasets import load_docstrings
from maxdisc.testing import taking


def main() -> None:
    documents = load_docstrings("package")
    texts, labels = documents.data[::20], documents.target[::20]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.maxdisc"
        save(MaxDiscClassifier(evidence="calibrated").fit(texts, labels), path)
        # Large requests take compiled code; this one is small, so it is asked for.
        with taking("compiled"):
            load(path).predict_proba(texts)


if __name__ == "__main__":
    main()
