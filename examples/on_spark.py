"""
Fit on Spark
============

``SparkMaxDiscClassifier`` is an estimator of ``pyspark.ml``: it works in pipelines, with evaluators and cross-validation, and its model is that of the same rows
in memory.

It needs the extra ``spark`` and Java 17: ``python -m pip install '.[spark]'``. The documentation build does not run this example, because a cluster takes long to start; run it with
``python examples/on_spark.py``.
"""

import os
import sys
import tempfile
from pathlib import Path

from pyspark.ml.evaluation import MulticlassClassificationEvaluator
from pyspark.ml.feature import StringIndexer
from pyspark.sql import SparkSession

import maxdisc
from maxdisc.adapters.spark import SparkMaxDiscClassifier
from maxdisc.datasets import load_docstrings

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.log.level", "ERROR")
    .getOrCreate()
)

# %%
# Documents and their labels, in a DataFrame of four partitions:

documents = load_docstrings("package")
rows = [(text, str(label)) for text, label in zip(documents.data[::4], documents.target[::4], strict=True)]
frame = spark.createDataFrame(rows, ["body", "package"]).repartition(4)
train, test = frame.randomSplit([0.7, 0.3], seed=0)

# %%
# Words are counted on the workers; only the vocabulary and sums are sent to the driver.

model = SparkMaxDiscClassifier(textCol="body", labelCol="package", minDF=3).fit(train)
predicted = model.transform(test)
predicted.select("package", "prediction", "probability").show(3)

indexed = (
    StringIndexer(inputCol="package", outputCol="index", stringOrderType="alphabetAsc")
    .fit(train)
    .transform(predicted)
)
accuracy = MulticlassClassificationEvaluator(labelCol="index", metricName="accuracy").evaluate(indexed)
print(f"accuracy on {test.count()} documents that were not seen: {accuracy:.3f}")

# %%
# ``estimator`` is a model that works without Spark: save it, and predict anywhere.

with tempfile.TemporaryDirectory() as folder:
    maxdisc.save(model.estimator, Path(folder) / "packages.maxdisc")
    alone = maxdisc.load(Path(folder) / "packages.maxdisc")
print(alone.predict(["the Hessian of a sparse matrix"]))
spark.stop()
