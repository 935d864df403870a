"""Spark: an Estimator and a Model for ``pyspark.ml``, whose rows stay in the partitions of a DataFrame."""

from __future__ import annotations

try:
    import pandas  # noqa: F401  # Spark's Arrow functions ask for both
    import pyarrow  # noqa: F401
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError("maxdisc.adapters.spark needs pyspark: pip install 'maxdisc[spark]'") from error

from maxdisc.adapters.spark.estimator import SparkMaxDiscClassifier
from maxdisc.adapters.spark.model import SparkMaxDiscClassifierModel

__all__ = ["SparkMaxDiscClassifier", "SparkMaxDiscClassifierModel"]
