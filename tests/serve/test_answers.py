"""What the service answers, next to what the model itself says."""

from __future__ import annotations

import csv
import io
import json
import re
import time
import warnings

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from maxdisc import MaxDiscClassifier, load, save
from maxdisc.inspection.ranking import ranking_table
from maxdisc.serve import Limits, answers, create_app
from maxdisc.serve.app import SMALL, app_of
from maxdisc.serve.bodies import ExplainBody, PredictBody
from maxdisc.serve.csv_rows import _once
from maxdisc.serve.guard import CSP
from maxdisc.serve.logs import Log
from maxdisc.serve.metrics import Metrics
from maxdisc.serve.reading import BODIES, Bodies
from maxdisc.serve.refusals import RefusedError
from maxdisc.serve.served_model import ServedModel
from maxdisc.serve.service import Service

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer versions of it would rather have httpx2
    from starlette.testclient import TestClient

TEXTS = ["The shuttle reached orbit", "a goalie and the puck", "", "Ünknown wörds 😀 only", "engine " * 40]
ROWS = [
    {"age": 61, "smokes": True, "ward": "n"},
    {"age": 30.5, "smokes": False, "ward": "s"},
    {"age": None},
    {},
    {"ward": "never seen", "smokes": 1},
]


@pytest.fixture(scope="module")
def lines():
    return []


@pytest.fixture(scope="module")
def client(models, lines):
    class Lines:
        def write(self, text):
            lines.append(text)

        def flush(self):
            pass

    names = ("text", "grams", "table", "vectors")
    paths = {name: models / f"{name}.maxdisc" for name in names}
    service = Service(paths, Limits(bytes=20_000, batch=50), log=Log(Lines()), reload_seconds=0)
    with TestClient(app_of(service)) as client:
        wait_until_ready(client)
        yield client


def wait_until_ready(client):
    deadline = time.monotonic() + 120
    while client.get("/readyz").status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def frame_of(rows):
    import pandas as pd

    frame = pd.DataFrame([{"age": None, "smokes": None, "ward": None, **row} for row in rows])
    return frame.astype({"age": float, "smokes": float})


def test_texts_are_predicted_as_by_the_model(client, models):
    model = load(models / "text.maxdisc")
    said = client.post("/predict", json={"texts": TEXTS, "top": 0}).json()
    assert said["model"] == "text"
    expected = model.predict_proba(TEXTS)
    classes = model.classes_.tolist()
    for one, row, p in zip(
        said["predictions"], expected, model[-1].novelty(model[0].transform(TEXTS)), strict=True
    ):
        told = {each["label"]: each["probability"] for each in one["classes"]}
        assert np.array_equal([told[label] for label in classes], row)
        shares = [each["probability"] for each in one["classes"]]
        assert shares == sorted(shares, reverse=True)
        assert (one["label"], one["probability"]) == (one["classes"][0]["label"], shares[0])
        assert one["novelty"] == p
        assert one["unknown"] is False
    assert [one["label"] for one in said["predictions"]] == model.predict(TEXTS).tolist()


def test_a_classifier_of_documents_answers_as_its_pipeline(models):
    answers = {}
    for name in ("text", "one"):
        app = create_app({"model": models / f"{name}.maxdisc"}, reload_seconds=0)
        with TestClient(app) as client:
            wait_until_ready(client)
            model = client.get("/model").json()
            answers[name] = (
                client.post("/predict", json={"texts": TEXTS, "top": 0}).json(),
                client.post("/explain", json={"text": TEXTS[0]}).json(),
                client.get("/ranking").json(),
                {key: model[key] for key in ("kind", "classes", "text_column")},
            )
    assert answers["one"] == answers["text"]


def test_rows_are_predicted_as_by_the_model(client, models):
    model = load(models / "table.maxdisc")
    said = client.post("/predict?model=table", json={"rows": ROWS, "top": 0}).json()["predictions"]
    expected = model.predict_proba(frame_of(ROWS))
    for one, row in zip(said, expected, strict=True):
        told = {each["label"]: each["probability"] for each in one["classes"]}
        assert np.allclose([told[label] for label in model.classes_], row, rtol=1e-12)
    # Nothing known is the prior, and what was never seen is no evidence.
    alone = client.post("/predict?model=table", json={"rows": [{"smokes": True}]}).json()["predictions"][0]
    assert alone["probability"] == said[4]["probability"]


def test_vectors_are_predicted_as_by_the_model(client, models):
    model = load(models / "vectors.maxdisc")
    said = client.post("/predict?model=vectors", json={"rows": [{"x0": 2, "x2": 1}, {}]}).json()[
        "predictions"
    ]
    import scipy.sparse as sp

    expected = model.predict_proba(sp.csr_array(np.array([[2.0, 0.0, 1.0], [0.0, 0.0, 0.0]])))
    assert np.allclose([one["probability"] for one in said], expected.max(axis=1), rtol=1e-12)


def test_top_and_unknown(client):
    body = {"texts": ["orbit", "zebra xylophone"], "top": 2, "unknown": 0.999999}
    said = client.post("/predict", json=body).json()["predictions"]
    assert [len(one["classes"]) for one in said] == [2, 2]
    assert all(one["unknown"] == (one["novelty"] <= 0.999999) for one in said)
    assert any(one["unknown"] for one in said)
    refused = client.post("/predict?model=grams", json={"texts": ["orbit"], "unknown": 0.01})
    assert refused.status_code == 422
    assert "no p-values" in refused.json()["error"]


@pytest.mark.parametrize(
    ("model", "body"),
    [
        *(("text", {"text": text, "n": 3}) for text in TEXTS),
        ("grams", {"text": "The launch of the shuttle", "n": 2}),
        *(("table", {"row": row}) for row in ROWS),
        ("table", {"row": ROWS[0], "first": "well", "second": "ill"}),
        ("vectors", {"row": {"x1": 3}, "n": 1}),
    ],
)
def test_an_explanation_adds_up(client, model, body):
    said = client.post(f"/explain?model={model}", json=body).json()
    total = said["prior"] + sum(each["odds"] for each in said["features"]) + said["rest"]
    assert said["total"] == pytest.approx(total, abs=1e-9)
    told = {each["label"]: each["probability"] for each in said["classes"]}
    odds = np.log(told[said["first"]]) - np.log(told[said["second"]])
    assert said["total"] == pytest.approx(odds, rel=1e-6, abs=1e-6)
    assert sum(told.values()) == pytest.approx(1)
    if "first" not in body:
        best = [each["label"] for each in said["classes"][:2]]
        assert [said["first"], said["second"]] == best
        assert said["label"] == best[0]
    assert len(said["features"]) <= body.get("n", 15)


@pytest.mark.parametrize("model", ["text", "grams"])
def test_spans_are_cut_as_javascript_does(client, models, model):
    text = "😀 The SHUTTLE, \U0001d49c launch İstanbul orbit; the puck"
    said = client.post(f"/explain?model={model}", json={"text": text, "n": 10_000}).json()
    units = text.encode("utf-16-le")
    odds = {each["name"]: each["odds"] for each in said["features"]}
    found = []
    for span in said["spans"]:
        cut = units[2 * span["start"] : 2 * span["end"]].decode("utf-16-le")
        found.append(cut.lower())
        assert span["odds"] == odds[span["feature"]] != 0
        words = [word for word in cut.lower().replace(",", " ").split() if word != "the" or model == "text"]
        assert span["feature"].split() == words or "\U0001d49c" in cut
    vocabulary = load(models / f"{model}.maxdisc")[0].vocabulary_
    for word in ("shuttle", "launch", "orbit", "puck"):
        assert (word in vocabulary) == (word in found)
    assert [s["start"] for s in said["spans"]] == sorted(s["start"] for s in said["spans"])


def test_values_are_counts_of_words_and_cells_of_rows(client):
    said = client.post("/explain", json={"text": "orbit orbit moon", "n": 10_000}).json()
    values = {each["name"]: each["value"] for each in said["features"]}
    assert (values["orbit"], values["moon"], values["puck"]) == (2, 1, 0)
    said = client.post("/explain?model=table", json={"row": {"age": 50, "ward": "n"}}).json()
    values = {each["name"]: each["value"] for each in said["features"]}
    assert values == {"age": 50, "ward": "n", "smokes": None}


def test_csv_comes_back_with_predictions(client, models):
    import csv
    import io

    model = load(models / "text.maxdisc")
    body = 'id,body,label\n1,"the puck, the ice",x\n2,orbit moon,\n'
    answer = client.post("/predict.csv", content=body, headers={"Content-Type": "text/csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    texts = ["the puck, the ice", "orbit moon"]
    assert [row["label"] for row in rows] == model.predict(texts).tolist()
    assert [row["given_label"] for row in rows] == ["x", ""]
    assert [row["body"] for row in rows] == texts
    proba = np.sort(model.predict_proba(texts), axis=1)
    for row, shares in zip(rows, proba, strict=True):
        assert float(row["probability"]) == pytest.approx(shares[-1], rel=1e-5)
        assert float(row["runner_up_probability"]) == pytest.approx(shares[-2], rel=1e-5)
        assert 0 < float(row["novelty"]) <= 1
    table = client.post(
        "/predict.csv?model=table",
        content="ward,age,smokes\nn,61,true\n,n/a,\n",
        headers={"Content-Type": "text/csv; charset=utf-8"},
    )
    told = list(csv.DictReader(io.StringIO(table.text)))
    expected = load(models / "table.maxdisc").predict_proba(frame_of([ROWS[0], {}])).max(axis=1)
    assert np.allclose([float(row["probability"]) for row in told], expected, rtol=1e-5)


def test_ranking_is_the_models_own(client, models):
    model = load(models / "text.maxdisc")
    table = list(ranking_table(model, n=10_000))
    said = client.get("/ranking?limit=1000").json()
    assert said["total"] == len(table) == len(said["features"])
    assert [f["name"] for f in said["features"]] == [row.feature for row in table]
    assert [f["class"] for f in said["features"]] == [row.label for row in table]
    assert np.allclose([f["score"] for f in said["features"]], [row.score for row in table])
    page = client.get("/ranking?offset=3&limit=2").json()["features"]
    assert page == said["features"][3:5]
    found = client.get("/ranking?search=PU").json()
    assert [f["name"] for f in found["features"]] == ["puck"]
    mine = client.get("/ranking?class=cars&limit=1000").json()["features"]
    assert mine == [f for f in said["features"] if f["class"] == "cars"]
    assert client.get("/ranking?class=trains").status_code == 422


def test_densities_are_densities(client):
    said = client.get("/density?model=table&feature=age").json()
    assert said["kind"] == "density"
    for curve in said["curves"]:
        assert len(curve["values"]) == len(said["points"])
        assert np.trapezoid(curve["values"], said["points"]) == pytest.approx(1, abs=0.05)
    bars = client.get("/density?model=table&feature=ward").json()
    assert sorted(bars["points"]) == ["e", "n", "s", "w"]
    counts = client.get("/density?feature=orbit").json()
    assert all(c["at_zero"] == pytest.approx(c["values"][0]) for c in counts["curves"])
    assert client.get("/density?feature=zebra").status_code == 404
    assert client.get("/density").status_code == 422


def test_a_model_tells_what_it_is(client, models):
    said = client.get("/model?model=table").json()
    assert (said["name"], said["kind"], said["text_column"]) == ("table", "table", None)
    assert [(c["name"], c["kind"], c["levels"]) for c in said["columns"]] == [
        ("age", "number", None),
        ("smokes", "truth", None),
        ("ward", "category", ["e", "n", "s", "w"]),
    ]
    assert sum(each["share"] for each in said["classes"]) == pytest.approx(1)
    assert said["limits"] == {"batch": 50, "bytes": 20_000, "seconds": 10.0}
    assert said["file"]["bytes"] == (models / "table.maxdisc").stat().st_size
    assert len(said["path"]["sizes"]) == len(said["path"]["accuracy"]) == len(said["path"]["standard_error"])
    text = client.get("/model").json()
    assert (text["kind"], text["text_column"], text["columns"]) == ("text", "body", [])
    listed = client.get("/models").json()["models"]
    assert [(m["name"], m["kind"], m["default"]) for m in listed] == [
        ("text", "text", True),
        ("grams", "text", False),
        ("table", "table", False),
        ("vectors", "vectors", False),
    ]


def test_what_would_be_too_much_to_send_is_refused(models):
    model = ServedModel.read("text", models / "text.maxdisc")
    long = ExplainBody(text="orbit " * (answers.MOST_CHARACTERS // 6 + 1))
    with pytest.raises(RefusedError, match="longer than"):
        answers.explained(model, long, Limits())
    many = PredictBody(texts=["orbit"] * (answers.MOST_SHARES // 3 + 1), top=0)
    with pytest.raises(RefusedError, match="too much for one answer"):
        answers.predicted(model, many, Limits(batch=10**7))


DEEP = b'{"texts":' + b"[" * 5000 + b"]" * 5000 + b"}"


@pytest.mark.parametrize(
    ("path", "body", "status", "told"),
    [
        ("/predict", b"", 422, "not JSON"),
        ("/predict", b"{", 422, "not JSON"),
        ("/predict", b'{"texts":["\xff"]}', 422, "not JSON"),
        ("/predict", b'{"texts":["\\ud800"]}', 422, "hex escape"),
        ("/predict", DEEP, 422, "recursion"),
        ("/predict", b"[]", 422, "the body"),
        ("/predict", b"{}", 422, "takes 'texts'"),
        ("/predict", b'{"texts":[]}', 422, "texts"),
        ("/predict", b'{"texts":"one"}', 422, "texts"),
        ("/predict", b'{"texts":[1]}', 422, "texts[0]"),
        ("/predict", b'{"texts":["a"],"top":-1}', 422, "top"),
        ("/predict", b'{"texts":["a"],"top":1.5}', 422, "top"),
        ("/predict", b'{"texts":["a"],"top":' + b"9" * 400 + b"}", 422, "top"),
        ("/predict", b'{"texts":["a"],"unknown":NaN}', 422, "unknown"),
        ("/predict", b'{"texts":["a"],"unknown":2}', 422, "unknown"),
        ("/predict", b'{"texts":["a"],"text":"b"}', 422, "'text'"),
        ("/predict", b'{"rows":[{"a":1}]}', 422, "takes 'texts', not 'rows'"),
        ("/predict", json.dumps({"texts": ["a"] * 51}).encode(), 413, "at most 50"),
        ("/predict", b" " * 30_000, 413, "20,000 bytes"),
        ("/predict?model=table", b'{"rows":[{"agee":1}]}', 422, "'agee'"),
        ("/predict?model=table", b'{"rows":[{"age":1e999}]}', 422, "too large"),
        ("/predict?model=table", b'{"rows":[{"age":NaN}]}', 422, ""),
        ("/predict?model=table", b'{"rows":[{"age":Infinity}]}', 422, ""),
        ("/predict?model=table", b'{"rows":[{"age":' + b"9" * 400 + b"}]}", 422, "too large"),
        (
            "/predict?model=table",
            b'{"rows":[{"age":"old"}]}',
            422,
            "row 0, column 'age': 'old' is not a number",
        ),
        ("/predict?model=table", b'{"rows":[{},{"smokes":2}]}', 422, "row 1, column 'smokes'"),
        ("/predict?model=table", b'{"rows":[{"ward":[]}]}', 422, "an array is not a category"),
        ("/predict?model=table", b'{"rows":[{"ward":{"a":[{}]}}]}', 422, "an object is not a category"),
        ("/predict?model=table", b'{"rows":[null]}', 422, "rows[0]"),
        ("/predict?model=zebra", b"{}", 404, "no model 'zebra'"),
        ("/explain", b'{"text":"a","first":"x"}', 422, "no class 'x'"),
        ("/explain", b'{"text":"a","first":"cars","second":"cars"}', 422, "twice"),
        ("/explain", b'{"text":"a","n":0}', 422, "n:"),
        ("/explain", b'{"texts":["a"]}', 422, "'texts'"),
        ("/explain?model=table", b'{"text":"a"}', 422, "takes 'row'"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(client, path, body, status, told):
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert told.lower() in error.lower()
    assert "\n" not in error
    assert len(error) <= 300


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "empty"),
        (b"body\n", "no rows"),
        (b"text\nhello\n", "no column 'body'"),
        (b"body\n\xff\n", "not UTF-8"),
        (b"body,b\n1\n", "1 field"),
        (b'body\n"never ends\n', ""),
        (b"\x1f\x8b\x08\x00", "not UTF-8"),
    ],
)
def test_csv_that_cannot_be_read_is_refused(client, body, told):
    answer = client.post("/predict.csv", content=body, headers={"Content-Type": "text/csv"})
    if told:
        assert answer.status_code == 422
        assert told in answer.json()["error"]
    else:
        assert answer.status_code in (200, 422)


def test_wrong_types_paths_and_methods(client):
    assert client.post("/predict", content=b"{}").status_code == 415
    assert client.post("/predict.csv", json={}).status_code == 415
    squeezed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert client.post("/predict", content=b"{}", headers=squeezed).status_code == 415
    for method, path, status in (
        ("GET", "/predict", 405),
        ("GET", "/nothing", 404),
        ("DELETE", "/model", 405),
    ):
        answer = client.request(method, path)
        assert answer.status_code == status
        assert answer.json()["error"]
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/static/%2e%2e/app.py").status_code == 404
    for query in ("offset=-1", "limit=0", "limit=1e9", "offset=x"):
        assert client.get(f"/ranking?{query}").status_code == 422
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404


def test_every_answer_has_the_headers_of_safety(client):
    for answer in (client.get("/healthz"), client.get("/nothing"), client.get("/"), client.post("/predict")):
        assert answer.headers["content-security-policy"] == CSP
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_logs_tell_of_requests_and_not_of_documents(client, lines):
    lines.clear()
    secret = "zzsecretzz"
    client.post("/predict", json={"texts": [secret, "b"]})
    client.post("/explain", json={"text": secret, "first": secret})
    client.post("/predict?model=table", json={"rows": [{"age": secret}, {secret: 1}]})
    client.post("/predict.csv", content=f"body\n{secret}\n", headers={"Content-Type": "text/csv"})
    client.get(f"/ranking?search={secret}")
    written = "".join(lines)
    assert secret not in written
    told = [json.loads(line) for line in written.splitlines()]
    assert [(one["method"], one["path"], one["status"], one["rows"], one["model"]) for one in told] == [
        ("POST", "/predict", 200, 2, "text"),
        ("POST", "/explain", 422, 1, "text"),
        ("POST", "/predict", 422, None, "table"),
        ("POST", "/predict.csv", 200, 1, "text"),
        ("GET", "/ranking", 200, None, "text"),
    ]


def samples(client):
    """The value of each metric by its name and labels, as Prometheus reads them."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def increases(client, ask):
    """What a request added to each counter, by its name and its labels except for the model."""
    before = samples(client)
    assert ask().status_code == 200
    found = {}
    for (name, labels), value in samples(client).items():
        more = value - before.get((name, labels), 0)
        if more and name.endswith("_total") and ("path", "/metrics") not in labels:
            values = [value for label, value in sorted(labels) if label != "model"]
            found[name.removeprefix("maxdisc_").removesuffix("_total"), *values] = more
    return found


def test_metrics_count_requests_and_statistics_of_documents(client):
    body = {"texts": ["orbit orbit rocket", "Goalie wibble"], "unknown": 0.999999999}
    found = increases(client, lambda: client.post("/predict", json=body))
    assert found == {
        ("requests", "/predict", "200"): 1,
        ("rows",): 2,
        ("unknown_rows",): 2,
        ("predicted_rows", "space"): 1,
        ("predicted_rows", "hockey"): 1,
        ("words",): 5,
        ("unknown_words",): 1,
    }
    rows = "body\norbit rocket\nlaunch zzz yyy\n"
    found = increases(
        client, lambda: client.post("/predict.csv", content=rows, headers={"Content-Type": "text/csv"})
    )
    assert found == {
        ("requests", "/predict.csv", "200"): 1,
        ("rows",): 2,
        ("predicted_rows", "space"): 2,
        ("words",): 5,
        ("unknown_words",): 2,
    }


def test_of_pairs_of_words_only_words_are_counted(client):
    body = {"texts": ["orbit wibble orbit"]}
    found = increases(client, lambda: client.post("/predict?model=grams", json=body))
    assert (found["words",], found["unknown_words",]) == (3, 1)


def test_metrics_count_missing_cells(client):
    body = {"rows": [{"age": 61, "ward": None}, {}]}
    found = increases(client, lambda: client.post("/predict?model=table", json=body))
    assert (found["rows",], found["cells",], found["missing_cells",]) == (2, 6, 5)
    rows = "age,smokes,ward\n61,,north\n,1,\n"
    found = increases(
        client,
        lambda: client.post("/predict.csv?model=table", content=rows, headers={"Content-Type": "text/csv"}),
    )
    assert (found["rows",], found["cells",], found["missing_cells",]) == (2, 6, 3)
    found = increases(client, lambda: client.post("/predict?model=vectors", json={"rows": [{"x0": 1}]}))
    assert ("cells",) not in found


def test_metrics_name_models_and_times(client):
    client.post("/predict", json={"texts": ["a"]})
    found = samples(client)
    path = ("path", "/predict")
    n_all = found["maxdisc_request_seconds_bucket", frozenset({path, ("le", "+Inf")})]
    assert n_all == found["maxdisc_request_seconds_count", frozenset({path})]
    assert n_all == sum(
        v for (name, labels), v in found.items() if name == "maxdisc_requests_total" and path in labels
    )
    kinds = {
        dict(labels)["model"]: dict(labels)["kind"] for name, labels in found if name == "maxdisc_model_info"
    }
    assert kinds["table"] == "table"
    assert set(kinds) == set(client.get("/readyz").json()["models"])


def test_services_of_one_process_do_not_share_counts():
    one, other = Metrics(), Metrics()
    one.add("maxdisc_timeouts_total")
    one.add("maxdisc_rows_total", model="\udcff")
    assert b"maxdisc_timeouts_total 1.0" in one.text()
    assert b"maxdisc_timeouts_total 0.0" in other.text()


def test_only_what_takes_little_is_computed_where_requests_are_read(models, monkeypatch):
    text, table = (ServedModel.read(name, models / f"{name}.maxdisc") for name in ("text", "table"))
    assert answers.takes_little(text, PredictBody(texts=["orbit"]))
    assert answers.takes_little(table, PredictBody(rows=[{}]))
    # A body of two kilobytes has room for as many rows.
    assert not answers.takes_little(table, PredictBody(rows=[{}] * 670))
    many = [str(c) for c in range(1000)]
    monkeypatch.setattr(type(text), "classes", property(lambda _: many))
    assert answers.takes_little(text, PredictBody(texts=["orbit"]))
    assert not answers.takes_little(text, PredictBody(texts=[""] * 3, top=0))


def test_many_small_rows_in_a_small_body_are_answered_by_a_thread(models, monkeypatch):
    service = Service({"table": models / "table.maxdisc"}, log=Log(io.StringIO()), reload_seconds=0)
    aside, do = [], service.work.do

    async def noted(function, *given):
        aside.append(given)
        return await do(function, *given)

    monkeypatch.setattr(service.work, "do", noted)
    with TestClient(app_of(service)) as client:
        wait_until_ready(client)
        assert len(client.post("/predict", json={"rows": [{}]}).json()["predictions"]) == 1
        assert not aside
        body = json.dumps({"rows": [{}] * 670}, separators=(",", ":"))
        assert len(body) <= SMALL
        told = client.post("/predict", content=body, headers={"Content-Type": "application/json"}).json()
        assert len(told["predictions"]) == 670
        assert len(aside) == 1


def test_equal_names_of_columns_are_soon_told_apart():
    names = _once(["a", "b", "a_2", *["a"] * 20_000])
    assert names[:5] == ["a", "b", "a_2", "a_3", "a_4"]
    assert len(set(names)) == len(names)


def test_tables_that_would_take_too_much_memory_are_refused(client, monkeypatch):
    sent = {"params": {"model": "table"}, "headers": {"Content-Type": "text/csv"}}
    for delimiter in ",;":
        wide = f"age{delimiter * 2000}\n61{delimiter * 2000}\n"
        told = client.post("/predict.csv", content=wide, **sent)
        assert told.status_code == 413
        assert told.json()["error"] == (
            "the CSV has 2,001 columns: send those that the model takes, 1,003 at most."
        )
    monkeypatch.setattr(answers, "MOST_CELLS", 10)
    few = "4 rows of 3 columns are too much at once: send 3 rows at most."
    told = client.post("/predict", params={"model": "table"}, json={"rows": [{}] * 4})
    assert (told.status_code, told.json()["error"]) == (413, few)
    rows = "age,smokes,ward\n" + "61,true,n\n" * 4
    told = client.post("/predict.csv", content=rows, **sent)
    assert (told.status_code, told.json()["error"]) == (413, few)
    assert client.post("/predict.csv", content=rows[:-10], **sent).status_code == 200


@pytest.mark.parametrize("family", ["gamma", "categorical"])
def test_models_that_take_no_row_of_zeros_are_served(family, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.integers(1, 4, (60, 3)) + (3.0 * y[:, None] if family == "gamma" else 0.0)
    X[:, 0] = np.where(y == 1, 5, X[:, 0])
    model = MaxDiscClassifier(family, n_features="all", evidence="raw").fit(X, y)
    save(model, tmp_path / "m.maxdisc")
    served = ServedModel.read("m", tmp_path / "m.maxdisc")
    rows = [{f"x{j}": value for j, value in enumerate(row)} for row in X[:8].tolist()]
    told = answers.predicted(served, PredictBody(rows=rows), Limits())[0]["predictions"]
    assert [each["label"] for each in told] == [str(label) for label in model.predict(X[:8])]


def test_bodies_of_all_requests_together_have_a_limit():
    bodies = Bodies(Limits(bytes=10))
    scopes = [{} for _ in range(BODIES)]
    for scope in scopes:
        bodies._hold(scope, 10)
    assert bodies.held == 10 * BODIES
    with pytest.raises(RefusedError, match="ask again") as refused:
        bodies._hold(scopes[0], 1)
    assert refused.value.status == 503
    assert int(refused.value.headers["Retry-After"]) >= 1
    for scope in scopes:
        bodies.give_back(scope)
        bodies.give_back(scope)
    assert bodies.held == 0


def test_bodies_are_given_back_when_requests_are_answered(models):
    service = Service({"text": models / "text.maxdisc"}, log=Log(io.StringIO()), reload_seconds=0)
    with TestClient(app_of(service)) as client:
        wait_until_ready(client)
        for content in ('{"texts": ["orbit"]}', "{", '{"texts": ["' + "orbit " * 900 + '"]}'):
            client.post("/predict", content=content, headers={"Content-Type": "application/json"})
            assert service.bodies.held == 0


def test_columns_are_read_as_the_model_file_says(tmp_path):
    from maxdisc.cli import main

    lines = [f"{900 + 7 * i},5{i % 10} €;{10 + i % 19}.0{1 + i % 9}.2024;{'ab'[i % 2]}" for i in range(40)]
    data, model = tmp_path / "train.csv", tmp_path / "m.maxdisc"
    data.write_text("price;begun;y\n" + "\n".join(lines) + "\n", encoding="utf-8")
    assert main(["fit", str(data), "-o", str(model), "-q", "--evidence", "raw", "--smoothing", "1"]) == 0
    assert main(["predict", str(model), str(data), "-o", str(tmp_path / "out.csv"), "-q"]) == 0
    expected = [line.split(",") for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    service = Service({"m": model}, Limits(), log=Log(io.StringIO()), reload_seconds=0)
    with TestClient(app_of(service)) as client:
        wait_until_ready(client)
        sent = {"content": data.read_bytes(), "headers": {"Content-Type": "text/csv"}}
        told = list(csv.DictReader(io.StringIO(client.post("/predict.csv", **sent).text)))
        assert [[row["label"], row["probability"]] for row in told] == [row[:2] for row in expected]
        assert [row["price"] for row in told] == [line.split(";")[0] for line in lines]
        # JSON has numbers, but no dates: these come as text.
        day = lines[0].split(";")[1]
        rows = client.post("/predict", json={"rows": [{"price": 900.50, "begun": day}, {"price": 1}]}).json()
        one = rows["predictions"][0]
        assert one["label"] == expected[0][0]
        assert one["probability"] == pytest.approx(float(expected[0][1]), rel=1e-5)
        for cell, said in (
            ("tomorrow", "'tomorrow' is not a date (day/month/year)"),
            (3, "3 is not a date as text"),
        ):
            refused = client.post("/predict", json={"rows": [{"price": 1}, {"begun": cell}]})
            assert refused.status_code == 422
            assert "row 1, column 'begun': " + said in refused.text
        other = data.read_bytes().replace("€".encode(), b"$")
        assert "is not a number in" in client.post("/predict.csv", **{**sent, "content": other}).text
        gone = client.post("/predict.csv", **{**sent, "content": b"price;started\n1,5;01.01.2024\n"})
        assert "the CSV has no column 'begun'" in gone.text


def test_the_page_of_the_api_is_asked_for_and_local(models):
    paths = {"text": models / "text.maxdisc"}
    with TestClient(create_app(paths)) as client:
        assert client.get("/docs").status_code == 404
    with TestClient(create_app(paths, token="secret", docs=True)) as client:
        answer = client.get("/docs")
        assert answer.status_code == 200
        assert answer.headers["content-security-policy"] == CSP
        loaded = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
        assert any(name.endswith("swagger-ui-bundle.js") for name in loaded)
        for name in {*loaded} - {"openapi.json"}:
            assert client.get(f"/{name}").status_code == 200
        assert client.get("/openapi.json").status_code == 401


LIST = """use 'texts' with a list of documents: {"texts": ["..."]}."""
ONE = """use 'text' with one document: {"text": "..."}."""


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("predict", {"text": "orbit"}, f"the body has 'text'; {LIST}"),
        ("predict", {"row": {}}, "the body has 'row'; use 'rows' with a list of rows: "),
        ("explain", {"texts": ["orbit"]}, f"the body has 'texts'; {ONE}"),
        ("explain", {"rows": [{}]}, "the body has 'rows'; use 'row' with one row: "),
        ("predict", {"txets": []}, "the body has the unknown key 'txets'; it takes 'texts', 'rows', "),
    ],
)
def test_a_key_that_a_body_does_not_have_is_answered_with_the_right_one(client, path, body, told):
    answer = client.post(f"/{path}", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(told)


def test_columns_have_typical_values_and_the_most_telling_has_rank_0(tmp_path):
    rng = np.random.default_rng(0)
    pd = pytest.importorskip("pandas")
    y = np.repeat(["low", "high"], [300, 200])
    frame = pd.DataFrame(
        {
            "noise": rng.normal(size=500),
            "telling": rng.normal(np.where(y == "low", 0.0, 50.0), 3.0),
            "hue": np.where(y == "low", "red", "blue"),
            "wet": y == "low",
        }
    )
    frame.loc[::7, "hue"] = "green"
    model = MaxDiscClassifier(evidence="raw", n_features="all").fit(frame, y)
    save(model, tmp_path / "m.maxdisc")
    served = ServedModel.read("m", tmp_path / "m.maxdisc")
    columns = {column["name"]: column for column in answers.described(served, Limits())["columns"]}
    ranked = sorted((c for c in columns.values() if c["rank"] is not None), key=lambda c: c["rank"])
    assert [c["name"] for c in ranked] == frame.columns[model.ranking_].tolist()[: len(ranked)]
    # From 5 percent of the lower class to 95 percent of the higher; the median of the largest.
    expected = [
        np.quantile(frame["telling"][y == "low"], 0.05),
        np.quantile(frame["telling"][y == "high"], 0.95),
    ]
    assert columns["telling"]["typical"]["range"] == pytest.approx(expected, abs=0.7)
    assert columns["telling"]["typical"]["example"] == pytest.approx(0, abs=0.7)
    assert columns["hue"]["typical"] == {"range": None, "example": "red"}
    row = {name: column["typical"]["example"] for name, column in columns.items() if column["typical"]}
    row["wet"] = row["wet"] == "True"
    answer, _ = answers.predicted(served, PredictBody(rows=[row]), Limits())
    assert answer["predictions"][0]["label"] == "low"
