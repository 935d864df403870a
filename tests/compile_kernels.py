"""Compile the kernels that most tests use, unless this has been done: ``python tests/compile_kernels.py``."""

from __future__ import annotations

import sys

from maxdisc.numerics.compiling import cache_folder


def compile_kernels() -> None:
    """Fit models of every kind that has compiled code."""
    # Not at the top: nearly always there is nothing to do.
    import numpy as np
    import scipy.sparse as sp

    from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
    from maxdisc.families import NumericFamily, Support, moments
    from maxdisc.families.functions import Cosine, Sine
    from maxdisc.testing import random_data, taking

    codes = np.arange(60) % 3
    counts = sp.csr_array(np.random.default_rng(0).poisson(1.0, size=(60, 30)).astype(float))
    ones = sp.csr_array((counts.toarray() > 0).astype(float))
    with taking("compiled"):
        for name in ("poisson", "exponential", "geometric", "bernoulli", "gaussian"):
            X = ones if name == "bernoulli" else counts
            for evidence in ("raw", "calibrated"):
                model = MaxDiscClassifier(name, evidence=evidence, cv="hash").fit(X, codes)
            model.predict_proba(X.astype(np.float32))
        for dtype in (np.float32, np.float64):
            MaxDiscClassifier().fit(random_data("gaussian", 60)[0].astype(dtype), codes)
        for family in (
            NumericFamily(Support(0.0, 1.0), moments(2)),
            NumericFamily(Support(0.0, lattice=True), moments(2)),
            NumericFamily(Support(0.0, 6.3), (Cosine(), Sine())),
        ):
            X, _ = random_data(family, 30)
            MaxDiscClassifier(family, n_features="all", smoothing=1.0, evidence="raw").fit(X, codes[:30])
        TermFrequencyVectorizer().fit_transform(["some words, and längere Wörter", "a few words"] * 9)


if __name__ == "__main__":
    folder = cache_folder()
    done = None if folder is None else folder / f"compiled-for-tests.{sys.implementation.cache_tag}"
    if done is not None and not done.exists():
        compile_kernels()
        done.touch()
