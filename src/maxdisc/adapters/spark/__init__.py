"""Spark: an Estimator and a Model for ``pyspark.ml``; rows stay in the partitions of a DataFrame."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from maxdisc.numerics.installation import pip_line

for _needed in ("pyspark", "pandas", "pyarrow"):  # Spark's Arrow functions ask for the others
    if find_spec(_needed) is None:
        raise ImportError(f"maxdisc.adapters.spark needs {_needed}: {pip_line('spark')}")

if TYPE_CHECKING:
    from maxdisc.adapters.spark.estimator import SparkMaxDiscClassifier
    from maxdisc.adapters.spark.model import SparkMaxDiscClassifierModel

__all__ = ["SparkMaxDiscClassifier", "SparkMaxDiscClassifierModel"]


def __getattr__(name: str) -> Any:
    # Late, since workers pass through here, and need neither of them to count.
    if name == "SparkMaxDiscClassifier":
        return importlib.import_module("maxdisc.adapters.spark.estimator").SparkMaxDiscClassifier
    if name == "SparkMaxDiscClassifierModel":
        return importlib.import_module("maxdisc.adapters.spark.model").SparkMaxDiscClassifierModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
