"""Checks of model files refuse no model that a fit gives, whatever legal rows it was given."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from maxdisc import DiscriminativeMaxEnt, Joint, MaxDiscClassifier
from maxdisc.model_file.persistence import from_bytes, to_bytes

RNG = np.random.default_rng(0)
Y = np.arange(45) % 3
USUAL = RNG.normal(size=(45, 3)) + Y[:, None]
#: Rows and their weights.
EXTREMES = {
    "usual": (USUAL, None),
    "large": (USUAL * 1e138, None),
    "small": (USUAL * 1e-138, None),
    "of all sizes": (USUAL * [1e138, 1.0, 1e-138], None),
    "heavy tails": (np.sign(USUAL) * 10 ** (40 * np.abs(USUAL)), None),
    "of many sizes": (10 ** (60 * np.clip(USUAL, -2, 2)), None),
    "at an offset": (USUAL + 1e10, None),
    "constant": (np.where(np.arange(3) == 0, 7.0, USUAL), None),
    "constant in each class": (np.where(np.arange(3) == 0, Y[:, None] * 1e100, USUAL), None),
    "one cell": (USUAL * [0.0, 1.0, 1.0] + 1e100 * np.eye(45, 3, -2), None),
    "missing": (np.where(RNG.random((45, 3)) < 0.6, np.nan, USUAL), None),
    "missing in a class": (np.where((Y[:, None] == 1) & (np.arange(3) == 1), np.nan, USUAL), None),
    "light and heavy": (USUAL, 10.0 ** (RNG.integers(-20, 20, 45))),
    "light": (USUAL, np.full(45, 1e-60)),
    "heavy": (USUAL, np.full(45, 1e60)),
}  # fmt: skip
STRUCTURES = {
    "independent": "independent",
    "logs": Joint(transform="log"),
    "logs per class": Joint("per_class", "oas", transform="log"),
    "hardly shrunk": Joint("per_class", 0.0, transform=None),
    "averaged": "joint",
}


def fitted(model, *rows):
    """The model, or None for what ``fit`` refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return model.fit(*rows)
        except ValueError:
            return None


@pytest.mark.parametrize("structure", STRUCTURES)
def test_what_was_fitted_to_extreme_numbers_is_loaded(structure):
    refused = []
    for name, (X, weights) in EXTREMES.items():
        model = fitted(MaxDiscClassifier("gaussian", structure=STRUCTURES[structure]), X, Y, weights)
        if model is None:
            refused.append(name)
            continue
        for moments in (False, True):
            again = from_bytes(to_bytes(model, moments=moments), f"{structure}, {name}")
            np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert np.isfinite(again.sample(200)[0]).all()
    assert "usual" not in refused
    assert len(refused) < len(EXTREMES) / 2


@pytest.mark.parametrize("family", ["gamma", "exponential", "poisson", "geometric", "hurdle"])
def test_what_was_fitted_to_extreme_amounts_is_loaded(family):
    for scale in (1.0, 1e-130, 1e130):
        X = np.exp(2 * USUAL) * scale
        X = np.round(X) if family in ("poisson", "geometric") and scale == 1 else X
        model = fitted(MaxDiscClassifier(family), X, Y)
        assert model is not None or scale != 1
        if model is not None:
            again = from_bytes(to_bytes(model, moments=True), f"{family}, {scale}")
            np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("scale", [1.0, 1e-130, 1e130])
def test_what_was_fitted_to_extreme_columns_is_loaded(scale):
    words = np.array(["red", "blue", None, ""], dtype=object)[np.arange(45) % 4]
    frame = pd.DataFrame(USUAL * [scale, 1.0, 1 / scale], columns=["a", "b", "c"]).assign(d=words)
    frame["e"] = np.abs(frame["a"])
    for missing in ("ignore", "informative"):
        model = fitted(MaxDiscClassifier(missing=missing), frame, Y)
        assert model is not None
        for moments in (False, True):
            again = from_bytes(to_bytes(model, moments=moments))
            np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize("name", EXTREMES)
def test_what_a_discriminative_model_learnt_from_extreme_numbers_is_loaded(name):
    X, weights = EXTREMES[name]
    model = fitted(DiscriminativeMaxEnt(), X, Y, weights)
    assert model is not None or name != "usual"
    if model is not None:
        again = from_bytes(to_bytes(model))
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
