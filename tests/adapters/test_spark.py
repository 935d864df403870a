"""Spark: the model is that of the rows in memory, whatever becomes of partitions, tasks and files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer, load
from maxdisc.inspection.model_view import ModelView
from maxdisc.rows.partitions import PartitionedRows
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.testing import check_rows

if not os.environ.get("MAXDISC_REQUIRE_EXTRAS"):
    pytest.importorskip("pyspark", reason="needs pyspark: python -m pip install '.[spark]'")

import pyarrow as pa
import pyarrow.parquet
from pyspark import TaskContext, cloudpickle
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import BinaryClassificationEvaluator, MulticlassClassificationEvaluator
from pyspark.ml.feature import IndexToString, StringIndexer
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql.types import DoubleType, StructField, StructType

from maxdisc.adapters.spark import SparkMaxDiscClassifier, SparkMaxDiscClassifierModel
from maxdisc.adapters.spark.columns import features_of, read_pieces
from maxdisc.adapters.spark.engine import FrameEngine
from maxdisc.adapters.spark.estimator import _classes
from maxdisc.adapters.spark.jobs import Facts
from maxdisc.cli import main

WORDS = {"0": "orbit moon rocket launch", "1": "goal ice puck team", "2": "salt pan butter oven"}
# Workers cannot import tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
# What takes few passes over the rows.
QUICK = {"smoothing": 1.0, "evidence": "raw"}


def counts(n=180, d=9, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    return rng.poisson(0.5 + (codes[:, None] == np.arange(d) % 3), size=(n, d)).astype(float), codes


def documents(n=120, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    texts = [
        " ".join([*rng.choice(WORDS[str(c)].split(), 2), *rng.choice(["a", "be", "of", "the"], 3)])
        for c in codes
    ]
    return texts, codes


def vectors(X):
    """Rows as Spark's vectors: sparse ones of a sparse matrix."""
    if sp.issparse(X):
        csr = sp.csr_array(X)
        return [Vectors.sparse(X.shape[1], row.indices.tolist(), row.data.tolist()) for row in csr]
    return [Vectors.dense(row) for row in X]


def frame(spark, partitions=3, **columns):
    """Columns as a DataFrame; numpy's numbers are none of Spark's."""
    values = [c.tolist() if isinstance(c, np.ndarray) else c for c in columns.values()]
    rows = list(zip(*values, strict=True))
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), list(columns))


def assert_same_model(there, here, X):
    there, here = ModelView.of(there), ModelView.of(here)
    assert there.classifier.n_selected_ == here.classifier.n_selected_
    assert there.family.name == here.family.name
    np.testing.assert_array_equal(there.classifier.ranking_, here.classifier.ranking_)
    found, due = there.classifier.moments_, here.classifier.moments_
    np.testing.assert_allclose(found.weight, due.weight, rtol=1e-12)
    np.testing.assert_allclose(found.means(), due.means(), rtol=1e-12)
    np.testing.assert_allclose(found.centred()[1], due.centred()[1], rtol=1e-12, atol=1e-12)
    rows = here.rows(X)
    np.testing.assert_array_equal(there.classifier.predict(rows), here.classifier.predict(rows))
    np.testing.assert_allclose(
        there.classifier.predict_proba(rows), here.classifier.predict_proba(rows), rtol=1e-9
    )


def slices(X, codes, n_classes, batches):
    for batch in batches:
        for number in batch["id"].to_pylist():
            some = slice(number * 9, number * 9 + 9)
            yield X[some], codes[some], n_classes, None, None, number * 9


def rows_of(piece):
    return ArrayRows(*piece)


def test_the_laws_of_rows_through_a_tree(spark):
    asked = []

    def rows(X, codes, n_classes):
        # Nine slices with rows, and one without.
        engine = FrameEngine(spark.range(0, 10, 1, 10), partial(slices, X, codes, n_classes), 10)
        asked.append(engine)
        return PartitionedRows(engine, rows_of, n_classes, most_bytes=8 * 2 * 3 * 4 * 5)

    check_rows(rows, "gaussian")
    assert asked


@pytest.mark.parametrize(("form", "partitions"), [("dense", 1), ("sparse", 9), ("text", 3)])
def test_the_model_is_that_of_the_rows_in_memory(spark, form, partitions):
    if form == "text":
        X, codes = documents()
        there = SparkMaxDiscClassifier(textCol="x", minDF=2, nFeatures="auto", **QUICK)
        here = make_pipeline(TermFrequencyVectorizer(min_df=2), MaxDiscClassifier(cv="hash", **QUICK))
        data = frame(spark, partitions, x=X, label=codes)
    else:
        X, codes = counts()
        if form == "dense":
            X[::7, 4] = np.nan
        else:
            X = sp.csr_array(X)
        there = SparkMaxDiscClassifier(featuresCol="x", **QUICK)
        here = MaxDiscClassifier(cv="hash", **QUICK)
        data = frame(spark, partitions, x=vectors(X), label=codes)
    model = there.fit(data)
    assert_same_model(model.estimator, here.fit(X, codes.astype(float)), X)
    assert not spark.sparkContext._jsc.getPersistentRDDs(), "pieces were left in memory"


def test_weights_and_all_that_is_chosen_on_folds(spark):
    X, codes = counts()
    X, weights = sp.csr_array(X), np.random.default_rng(1).integers(0, 4, len(codes)) / 2
    data = frame(spark, 4, features=vectors(X), label=codes, w=weights)
    model = SparkMaxDiscClassifier(weightCol="w").fit(data)
    here = MaxDiscClassifier(cv="hash").fit(X, codes.astype(float), sample_weight=weights)
    assert_same_model(model.estimator, here, X)
    np.testing.assert_allclose(model.estimator.evidence_.weights, here.evidence_.weights, rtol=1e-6)


def test_a_model_of_text_keeps_its_labels_and_is_lazy(spark, tmp_path):
    texts, codes = documents()
    data = frame(spark, x=texts, topic=np.array(["hot", "ice", "old"])[codes])
    model = SparkMaxDiscClassifier(textCol="x", labelCol="topic", **QUICK).fit(data)
    assert model.labels == ["hot", "ice", "old"]
    assert model.numClasses == 3
    assert model.numFeatures == len(model.estimator[0].terms_)
    poison = data.rdd.map(lambda _: 1 / 0).map(lambda _: ("a", "b")).toDF("x string, topic string")
    assert "prediction" in model.transform(poison).columns  # nothing has run
    predicted = model.transform(data)
    rows = IndexToString(inputCol="prediction", outputCol="said").transform(predicted).collect()
    due = model.estimator.predict_proba([row.x for row in rows])
    np.testing.assert_array_equal([row.said for row in rows], np.array(model.labels)[due.argmax(axis=1)])
    np.testing.assert_allclose([row.probability.toArray() for row in rows], due, rtol=1e-12)
    np.testing.assert_allclose([np.exp(row.rawPrediction.toArray()) for row in rows], due, rtol=1e-12)
    assert model.predict(rows[0].x) == rows[0].prediction
    assert model.predictProbability(rows[0].x) == rows[0].probability
    model.save(str(tmp_path / "model"))
    again = SparkMaxDiscClassifierModel.load(str(tmp_path / "model"))
    assert (again.estimator.predict_proba(texts) == model.estimator.predict_proba(texts)).all()
    assert (again.uid, again.labels, again.getTextCol()) == (model.uid, model.labels, "x")


def test_a_pipeline_is_fitted_saved_loaded_and_goes_on(spark, tmp_path):
    X, codes = counts()
    data = frame(spark, x=X, y=np.array(["b", "a", "c"])[codes])  # arrays of numbers
    steps = [
        StringIndexer(inputCol="y", outputCol="label"),
        SparkMaxDiscClassifier(featuresCol="x", nFeatures=5, **QUICK),
        IndexToString(inputCol="prediction", outputCol="said"),
    ]
    pipeline = Pipeline(stages=steps)
    pipeline.save(str(tmp_path / "pipeline"))
    model = Pipeline.load(str(tmp_path / "pipeline")).fit(data)
    model.save(str(tmp_path / "model"))
    model.write().overwrite().save(str(tmp_path / "model"))
    again = PipelineModel.load(str(tmp_path / "model"))
    one, other = (m.transform(data).select("probability", "said", "y").collect() for m in (model, again))
    assert one == other  # to the last bit
    assert np.mean([row.said == row.y for row in one]) > 0.6
    assert again.stages[1].estimator.n_selected_ == 5


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_cross_validation_with_the_evaluators_of_pyspark(spark):
    X, codes = counts(90)
    codes = codes % 2
    data = frame(spark, 2, features=vectors(sp.csr_array(X)), label=codes)
    classifier = SparkMaxDiscClassifier(**QUICK)
    grid = ParamGridBuilder().addGrid(classifier.nFeatures, [1, 6]).build()
    judge = MulticlassClassificationEvaluator(metricName="logLoss")
    chosen = CrossValidator(
        estimator=classifier, estimatorParamMaps=grid, evaluator=judge, numFolds=2, seed=1
    ).fit(data)
    best = chosen.bestModel.estimator
    assert best.n_selected_ == grid[int(np.argmin(chosen.avgMetrics))][classifier.nFeatures]
    predicted = chosen.transform(data)
    p = best.predict_proba(X)
    assert judge.evaluate(predicted) == pytest.approx(-np.log(p[np.arange(len(codes)), codes]).mean())
    from sklearn.metrics import roc_auc_score

    area = BinaryClassificationEvaluator().evaluate(predicted)
    assert area == pytest.approx(roc_auc_score(codes, p[:, 1]), abs=1e-6)


def test_an_index_that_has_no_rows_has_no_probability(spark):
    X, codes = counts(60)
    data = frame(spark, 2, features=vectors(X), label=np.array([0.0, 2.0, 5.0])[codes])
    model = SparkMaxDiscClassifier(nFeatures="all", **QUICK).fit(data)
    row = model.setThresholds([1.0, 1.0, 1e-9, 1.0, 1.0, 1.0]).transform(data).first()
    assert model.numClasses == len(row.probability) == 6
    assert row.probability[1] == row.probability[3] == row.probability[4] == 0
    assert row.prediction == 2.0  # by its threshold
    with pytest.raises(ValueError, match="thresholds must be 6 numbers, got 1"):
        model.setThresholds([0.5]).transform(data)


def killed_twice(batches):
    """A partition whose worker dies at the first two attempts, after it has read something."""
    for batch in batches:
        task = TaskContext.get()
        if task.partitionId() == 1 and task.attemptNumber() < 2:
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch


def test_a_task_that_dies_twice_changes_nothing(spark):
    X, codes = counts()
    X = sp.csr_array(X)
    data = frame(spark, 3, features=vectors(X), label=codes)
    plain = data.select(sp_unwrapped("features"), "label")
    dying = plain.mapInArrow(killed_twice, plain.schema)
    attempts = dying.mapInArrow(seen_attempts, "attempt int").collect()
    assert max(row.attempt for row in attempts) == 2, "nobody was killed"
    arrays = dying.selectExpr("values", "label")
    model = SparkMaxDiscClassifier(featuresCol="values", **QUICK).fit(arrays)
    here = MaxDiscClassifier(cv="hash", **QUICK).fit(X.toarray(), codes.astype(float))
    assert_same_model(model.estimator, here, X.toarray())


def sp_unwrapped(name):
    from pyspark.ml.functions import vector_to_array

    return vector_to_array(name).alias("values")


def seen_attempts(batches):
    for batch in batches:
        attempt = TaskContext.get().attemptNumber()
        yield pa.RecordBatch.from_arrays([pa.array([attempt] * batch.num_rows, pa.int32())], ["attempt"])


def test_a_corrupt_file_among_good_ones_is_named(spark, tmp_path):
    X, codes = counts(60)
    table = pa.table({"x": list(X), "label": codes})
    for number in range(3):
        pyarrow.parquet.write_table(table, tmp_path / f"part-{number}.parquet")
    data = spark.read.parquet(str(tmp_path))
    content = bytearray((tmp_path / "part-1.parquet").read_bytes())
    content[:200] = bytes(200)
    (tmp_path / "part-1.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"^\S*part-1.parquet cannot be read: is it whole\?$"):
        SparkMaxDiscClassifier(featuresCol="x", **QUICK).fit(data)


def good(spark, **others):
    X, codes = counts(12)
    columns = {"features": vectors(X), "label": codes.astype(float).tolist()} | others
    kinds = StructType([StructField("features", VectorUDT()), StructField("label", DoubleType())])
    return spark.createDataFrame(list(zip(*columns.values(), strict=True)), kinds)


@pytest.mark.parametrize(
    ("settings", "columns", "message"),
    [
        ({"featuresCol": "x"}, {}, "no column 'x'; its columns are features, label"),
        ({"labelCol": "x"}, {}, "no column 'x'"),
        ({"weightCol": "x"}, {}, "no column 'x'"),
        ({"weightCol": "features"}, {}, "'features' holds vector: row weights are numbers"),
        ({"textCol": "label"}, {}, "'label' holds double: documents must be strings"),
        ({"featuresCol": "label"}, {}, "'label' holds double: features must be vectors"),
        ({"labelCol": "features"}, {}, "'features' holds vector: labels are numbers or text"),
        (
            {},
            {"label": [None, *[0.0, 1.0] * 5, 0.0]},
            r"1 of 12 rows have no label in column 'label': .*dropna",
        ),
        ({"family": "poisson"}, {"features": [Vectors.dense(-1.0, 2.0)] * 12}, "column 0 has -1 in some row"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(spark, settings, columns, message):
    with pytest.raises(ValueError, match=message) as told:
        SparkMaxDiscClassifier(nFeatures="all", **QUICK).setParams(**settings).fit(good(spark, **columns))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"weight": [-1.0, 1.0]}, "row weights must be finite numbers of at least 0"),
        ({"weight": [None, 1.0]}, "row weights must be finite numbers of at least 0"),
        ({"input": [None, [1.0]]}, "column 'x' is null in 1 rows"),
        ({"input": [[2.0, 1.0], [1.0]]}, "column 'x' has vectors of 1 and of 2 numbers"),
    ],
)
def test_what_a_worker_refuses(columns, message):
    batch = pa.RecordBatch.from_pydict({"input": [[1.0], [2.0]], "label": [0.0, 1.0], **columns})
    with pytest.raises(ValueError, match=message):
        list(read_pieces("x", iter([batch])))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.0, -1.0], "column 'y' has the label -1: numbers must be indices"),
        ([0.5, 1.0], "column 'y' has the label 0.5: numbers must be indices"),
        ([0.0, 1e9], "column 'y' has the label 1e\\+09: numbers must be indices"),
        ([0.0, np.nan], "1 of 2 rows have no label in column 'y'"),
    ],
)
def test_labels_that_are_none(labels, message):
    batch = pa.RecordBatch.from_pydict({"input": [[1.0], [2.0]], "label": labels})
    (piece,) = read_pieces("x", iter([batch]))
    with pytest.raises(ValueError, match=message):
        _classes("y", False, Facts.of(piece))


def test_parameters_are_those_that_can_be_saved():
    with pytest.raises(TypeError, match="no parameter 'nfeatures'"):
        SparkMaxDiscClassifier(nfeatures=3)
    with pytest.raises(TypeError, match="a name, a number or a list"):
        SparkMaxDiscClassifier(family=object())
    assert SparkMaxDiscClassifier(prior=np.array([0.5, 0.5])).getOrDefault("prior") == [0.5, 0.5]


def arrow(rows):
    """Vectors as Spark hands them over."""
    serialised = [VectorUDT().serialize(row) for row in rows]
    names = ("type", "size", "indices", "values")
    types = (pa.int8(), pa.int32(), pa.list_(pa.int32()), pa.list_(pa.float64()))
    arrays = [
        pa.array(column, kind) for column, kind in zip(zip(*serialised, strict=True), types, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, names)


def test_vectors_of_both_kinds_in_one_column():
    rows = [Vectors.dense(0.0, 1.0, np.nan), Vectors.sparse(3, [0], [2.0]), Vectors.sparse(3, [], [])]
    X, n_dense = features_of(arrow(rows), "x")
    np.testing.assert_array_equal(X.toarray(), [[0, 1, np.nan], [2, 0, 0], [0, 0, 0]])
    assert n_dense == 1
    X, n_dense = features_of(arrow(rows).slice(1), "x")
    assert (X.toarray().tolist(), n_dense) == ([[2, 0, 0], [0, 0, 0]], 0)
    X, n_dense = features_of(arrow(rows).slice(0, 1), "x")
    assert (type(X), n_dense) == (np.ndarray, 1)
    with pytest.raises(ValueError, match="'x' has vectors of 2 and of 3 numbers"):
        features_of(arrow([*rows, Vectors.dense(1.0, 2.0)]), "x")


def test_a_column_of_both_kinds_is_one_of_them(spark):
    X, codes = counts(60)
    X[:, 8] = np.nan
    mixed = [
        v if i % 2 else w for i, (v, w) in enumerate(zip(vectors(X), vectors(sp.csr_array(X)), strict=True))
    ]
    data = frame(spark, 5, features=mixed, label=codes)
    model = SparkMaxDiscClassifier(nFeatures="all", **QUICK).fit(data)
    assert_same_model(
        model.estimator, MaxDiscClassifier(n_features="all", **QUICK).fit(X, codes.astype(float)), X
    )
    found = {row.features.toArray().tobytes(): row.prediction for row in model.transform(data).collect()}
    assert [found[x.tobytes()] for x in X] == model.estimator.predict(X).tolist()


# ---------------------------------------------------------------------- the command line


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Files of documents and of a table, three of each."""
    folder = tmp_path_factory.mktemp("parts")
    texts, codes = documents()
    topics = [WORDS[str(c)].split()[0] for c in codes]
    X, y = counts(90)
    for number in range(3):
        rows = [f"{text},{topic}\n" for text, topic in list(zip(texts, topics, strict=True))[number::3]]
        (folder / f"text-{number}.csv").write_text("body,topic\n" + "".join(rows))
        some = slice(30 * number, 30 * number + 30)
        table = {f"x{j}": X[some, j] for j in range(X.shape[1])} | {"kind": [f"k{c}" for c in y[some]]}
        pyarrow.parquet.write_table(pa.table(table), folder / f"table-{number}.parquet")
    return folder


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("data", ["text-*.csv", "table-*.parquet"])
def test_the_command_writes_the_model_that_it_writes_without_spark(parts, tmp_path, capsys, data):
    common = ["fit", str(parts / data), "--smoothing", "1", "--evidence", "raw", "--quiet", "--folds"]
    if data.startswith("table"):  # which Spark gives one family, and a file in memory one for each column
        common[2:2] = ["--family", "gaussian"]
    assert main([*common, "hash", "-o", str(tmp_path / "here.maxdisc")]) == 0
    here = capsys.readouterr().out
    spark_options = ["--engine", "spark", "--master", "local[2]"]
    assert main([*common, "5", "-o", str(tmp_path / "there.maxdisc"), *spark_options]) == 0
    there = capsys.readouterr().out
    one, other = ([line.rstrip() for line in out.splitlines()[:-1]] for out in (there, here))
    assert one == other
    one, other = load(tmp_path / "there.maxdisc"), load(tmp_path / "here.maxdisc")
    X = documents()[0]
    if data.startswith("table"):
        X = pa.concat_tables(map(pyarrow.parquet.read_table, sorted(parts.glob(data)))).drop_columns("kind")
        X = X.to_pandas()
        np.testing.assert_array_equal(one.feature_names_in_, other.feature_names_in_)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-9)


@pytest.mark.usefixtures("spark")
def test_files_that_are_no_good_are_named_and_nothing_is_written(parts, tmp_path, capsys):
    broken = tmp_path / "data"
    broken.mkdir()
    for path in parts.glob("table-*.parquet"):
        (broken / path.name).write_bytes(path.read_bytes())
    content = (broken / "table-1.parquet").read_bytes()
    output = tmp_path / "out.maxdisc"
    fit = ["fit", str(broken / "*.parquet"), "--engine", "spark", "-o", str(output), "--label", "kind"]

    def refused(message):
        assert main(fit) == 2
        told = capsys.readouterr()
        assert re.search(message, told.err), told.err
        assert told.err.count("\n") == 1
        assert not told.out
        assert not output.exists()

    (broken / "table-1.parquet").write_bytes(content[: len(content) // 2])
    refused(r"table-1\.parquet is not a whole Parquet file")
    table = pyarrow.parquet.read_table(parts / "table-1.parquet")
    pyarrow.parquet.write_table(table.drop_columns("x3"), broken / "table-1.parquet")
    refused(r"table-1\.parquet has no column 'x3'")
    kinds = table["kind"].to_pylist()
    kinds[4] = None
    changed = table.drop_columns("kind").append_column("kind", pa.array(kinds))
    pyarrow.parquet.write_table(changed, broken / "table-1.parquet")
    refused(r"1 of 90 rows of .* have no label in column 'kind', first \S*table-1\.parquet row 5: ")
    fit.append("--search")
    refused("--search needs the rows in memory")


@pytest.mark.usefixtures("java")
def test_a_master_that_does_not_exist_ends_in_one_line(parts, tmp_path):
    command = [sys.executable, "-m", "maxdisc", "fit", str(parts / "text-*.csv"), "--engine", "spark"]
    done = subprocess.run(
        [*command, "--master", "nosuch", "-o", str(tmp_path / "out.maxdisc")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert re.fullmatch(r"maxdisc: Spark did not start at nosuch: .*Master must .*\n", done.stderr)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.usefixtures("java")
def test_the_command_starts_spark_itself_and_says_no_more_than_it_should(parts, tmp_path):
    output = tmp_path / "out.maxdisc"
    command = [sys.executable, "-m", "maxdisc", "fit", str(parts / "text-*.csv"), "--engine", "spark"]
    done = subprocess.run(
        [*command, "--master", "local[2]", "-o", str(output), "--quiet"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert load(output).predict(["orbit moon", "salt pan"]).tolist() == ["orbit", "salt"]


def test_the_example_of_the_guide(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "spark.md"
    scope = {"spark": spark}
    for code in re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL):
        # Spark writes where its JVM was started.
        here = code.replace('"mail-model"', repr(str(tmp_path / "mail-model")))
        exec(compile(here, str(guide), "exec"), scope)
    assert scope["model"].labels == ["ham", "spam"]
    assert {path.name for path in tmp_path.iterdir()} == {"mail-model", "mail.maxdisc"}
    assert "spam" in capsys.readouterr().out
