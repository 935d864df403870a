"""What a user would do with a mixed table without maxdisc: fill, encode, and take one of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

BINS, ALPHAS = (3, 5, 8, 12), (0.1, 1.0)


def _one_up(X: np.ndarray) -> np.ndarray:
    return X + 1


def columns_of(frame: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Numbers, and all others."""
    numbers = [c for c in frame if pd.api.types.is_numeric_dtype(frame[c]) and frame[c].dtype != bool]
    return numbers, [c for c in frame if c not in numbers]


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """What is no number as text, missing cells as such."""
    out = frame.copy()
    for c in columns_of(frame)[1]:
        out[c] = frame[c].map(str, na_action="ignore").astype(object)
    return out


def _prepared(frame: pd.DataFrame, numbers: Any, others: Any) -> Any:
    """Mean for missing numbers, "missing" for missing categories, then an encoding of each."""
    filled = SimpleImputer(strategy="constant", fill_value="missing")
    names = columns_of(frame)
    return make_pipeline(
        FunctionTransformer(_plain),
        ColumnTransformer(
            [
                ("numbers", make_pipeline(SimpleImputer(), numbers), names[0]),
                ("others", make_pipeline(filled, others), names[1]),
            ],
            sparse_threshold=0,
        ),
    )


def _one_hot() -> OneHotEncoder:
    return OneHotEncoder(handle_unknown="ignore", sparse_output=False)


def _ordinal() -> Any:
    """Codes from 1 on; 0 for what was never seen."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(encoder, FunctionTransformer(_one_up))


def gaussian(frame: pd.DataFrame, one_hot: bool) -> Any:
    return make_pipeline(_prepared(frame, "passthrough", _one_hot() if one_hot else _ordinal()), GaussianNB())


def binned(frame: pd.DataFrame) -> Any:
    """Categories and bins of numbers; how many bins, and the pseudo-counts, are chosen on inner folds."""
    bins = KBinsDiscretizer(encode="ordinal", quantile_method="averaged_inverted_cdf")
    model = make_pipeline(_prepared(frame, bins, _ordinal()), CategoricalNB(min_categories=_widths(frame)))
    grid = {
        "pipeline__columntransformer__numbers__kbinsdiscretizer__n_bins": BINS,
        "categoricalnb__alpha": ALPHAS,
    }
    return GridSearchCV(model, grid, cv=3, scoring="neg_log_loss")


def _widths(frame: pd.DataFrame) -> np.ndarray:
    numbers, others = columns_of(frame)
    return np.array([max(BINS)] * len(numbers) + [frame[c].nunique() + 2 for c in others], dtype=int)


def general(frame: pd.DataFrame) -> Any:
    """wnb: categories categorical, numbers normal, as its manual shows it."""
    from wnb import Distribution, GeneralNB

    numbers, others = columns_of(frame)
    kinds = [Distribution.NORMAL] * len(numbers) + [Distribution.CATEGORICAL] * len(others)
    return make_pipeline(_prepared(frame, "passthrough", _ordinal()), GeneralNB(kinds, alpha=1.0))


def logistic(frame: pd.DataFrame) -> Any:
    return make_pipeline(_prepared(frame, StandardScaler(), _one_hot()), LogisticRegression(max_iter=1000))


PEERS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "GaussianNB, one-hot": lambda frame: gaussian(frame, True),
    "GaussianNB, ordinal": lambda frame: gaussian(frame, False),
    "CategoricalNB on bins": binned,
    "wnb": general,
    "logistic regression": logistic,
}
