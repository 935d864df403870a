"""Model files that anyone may have written, with checksums that fit, and all that can be asked of them."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from maxdisc import DiscriminativeMaxEnt, Joint, MaxDiscClassifier, ModelFileError, load
from maxdisc.cli import main
from maxdisc.inspection.odds import log_odds
from maxdisc.model_file import describe
from maxdisc.model_file.container import Container, write
from maxdisc.model_file.persistence import from_bytes, to_bytes
from maxdisc.report import evaluate
from maxdisc.testing import random_data
from tests.fitting.test_document_fits import TEXTS, Y

try:  # an extra
    from maxdisc.serve import Limits
    from maxdisc.serve.app import app_of
    from maxdisc.serve.logs import Log
    from maxdisc.serve.service import Service

    with warnings.catch_warnings():  # the next version of httpx has another name
        warnings.simplefilter("ignore")
        from starlette.testclient import TestClient
except ImportError:
    app_of = None

FIXTURES = Path(__file__).parent / "fixtures"


def parts(content):
    """Document and tensors of a file, to be changed at will."""
    container = Container.of(content)
    return container.document, {name: t.copy() for name, t in container.tensors().items()}


def signed(document, tensors):
    """A file of these with a checksum that fits."""
    file = io.BytesIO()
    write(file, tensors, document)
    return file.getvalue()


# ------------------------------------------------------------------ files to forge


@dataclass(frozen=True)
class Original:
    """A model file, and rows that its model takes, with labels."""

    content: bytes
    X: Any
    y: Any
    #: The rows and their labels as commands read them, where they have names of columns.
    table: pd.DataFrame | None


def _rows(shown):
    if isinstance(shown, dict):
        return pd.DataFrame(
            {name: [np.nan if v is None else v for v in values] for name, values in shown.items()}
        )
    if all(isinstance(row, str) for row in shown):
        return shown
    return np.array([[np.nan if v is None else v for v in row] for row in shown], dtype=float)


def _original(content, X, y):
    table = X if isinstance(X, pd.DataFrame) else None
    if isinstance(X, list):
        table = pd.DataFrame({"body": X})
    return Original(content, X, np.asarray(y), None if table is None else table.assign(said=np.asarray(y)))


def _of_fixture(path):
    stored = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return _original(path.read_bytes(), _rows(stored["X"]), stored["predicted"])


@cache
def originals():
    """A file of each kind: those of earlier versions, and some that this one writes."""
    found = {path.stem: _of_fixture(path) for path in sorted(FIXTURES.glob("*.maxdisc"))}

    def add(name, model, X, y, shown=slice(6), **given):
        found[name] = _original(to_bytes(model.fit(X, y), **given), X[shown], y[shown])

    add("lengths", MaxDiscClassifier(evidence="refined"), TEXTS, Y, moments=True)
    add("lengths-selected", MaxDiscClassifier(evidence="refined"), TEXTS, Y)
    frame = pd.DataFrame({"a": np.arange(40.0) % 7, "b": list("xyzx") * 10, "c": np.arange(40) % 3})
    add("mixed-selected", MaxDiscClassifier(), frame, np.array(["no", "yes"])[np.arange(40) % 7 // 4])
    for family in ("hurdle", "exponential", "beta", "poisson"):
        X, codes = random_data(family, 60, 3, 6, seed=4)
        add(family, MaxDiscClassifier(family), X, codes, moments=family != "beta")
    X, codes = random_data("poisson", 60, 3, 12, seed=5)
    add("conditional-dual", DiscriminativeMaxEnt("dual"), sp.csr_array(X), codes)
    add(
        "balanced", MaxDiscClassifier(class_weight={0: 1.0, 1: 2.0, 2: 1.0}, n_jobs=1), X, codes, moments=True
    )
    X, codes = _amounts()
    words = np.array(["low", "middle", "high"])[codes]
    average = MaxDiscClassifier(structure="joint", prior=[0.2, 0.3, 0.5])
    add("averaged", average, pd.DataFrame(X, columns=list("abcd")), words, moments=True)
    add(
        "joint-log",
        MaxDiscClassifier(structure=Joint("per_class", 0.5, transform="log")),
        X,
        codes,
        moments=True,
    )
    add("stream", _Stream(), X, codes, moments=True)
    return found


def _amounts():
    """Rows of four amounts that go together, some of them missing, in three classes."""
    rng = np.random.default_rng(6)
    codes = np.arange(90) % 3
    X = np.exp(rng.normal(size=(90, 4)) @ rng.normal(size=(4, 4)) / 2 + codes[:, None] * [0.0, 1.0, 0.5, 0.2])
    X[2, 1] = np.nan
    return X, codes


class _Stream:
    """What ``fit`` is of a model that sees its rows in batches, then again to choose features and weights."""

    def fit(self, X, y):
        model = MaxDiscClassifier("gamma")
        for start in range(0, len(y), 30):
            model.partial_fit(X[start : start + 30], y[start : start + 30], classes=np.unique(y))
        return model.choose_n_features(X, y)


# ------------------------------------------------------------------ forgeries

ODD = [
    None, True, False, 0, -1, 1, 2, 10**30, 0.5, -1e300, "", "x", "auto", "poisson", "a" * 1000, [], [[]], {},
    {"tuple": []}, {"set": ["a"]}, {"array": [1.0]}, {"array": ["a"]}, {"mapping": [["a", 0]]},
    {"function": "f"}, {"family": "gaussian"}, {"divergence": "kl"}, {"smoothing": [1.0, "flat"]},
    {"tuple": [1, 3]},
]  # fmt: skip


def mutated(node, rng):
    """A JSON tree with one place changed."""
    if isinstance(node, dict | list) and node and rng.random() < 0.85:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = rng.choice(keys)
        changed = node.copy()
        action = rng.random()
        if action < 0.8:
            changed[key] = mutated(node[key], rng)
        elif action < 0.9:
            del changed[key]
        elif isinstance(changed, dict):
            changed[rng.choice(["kind", "x", "path", "cv"])] = rng.choice(ODD)
        else:
            changed.append(rng.choice(changed))
        return changed
    if type(node) in (int, float) and rng.random() < 0.6:
        return type(node)(rng.choice([0, 1, 2, -node, node + 1, 2 * node, 10**6, 10**15]))
    if isinstance(node, float):
        return rng.choice([1e-300, 1e300, node / 3, 5e-324])
    return rng.choice(ODD)


#: Other numbers, all of them.
HOWS = (
    lambda t: t * 1e200, lambda t: t * 1e-200, lambda t: -t, lambda t: t * 0, lambda t: t + 1,
    lambda t: t * 1.001, lambda t: np.full_like(t, 1e308),
)  # fmt: skip


def mutated_tensor(tensor, rng):
    """A tensor with another type, another shape, or other numbers."""
    kind = rng.randrange(8)
    if kind == 0:
        with np.errstate(all="ignore"):
            return tensor.astype(rng.choice([np.float32, np.int64, np.uint8, np.bool_]))
    if kind == 1:
        return tensor[..., : rng.randrange(tensor.shape[-1] + 1)]
    if kind == 2:
        return np.concatenate([tensor, tensor[-1:]], axis=0)
    if kind == 3:
        return tensor[::-1]
    changed = tensor.copy()
    if not changed.size:
        return changed
    place = rng.randrange(changed.size)
    if kind == 4:
        values = [0, 1, -1, 1e-300, -1e300, np.nan, np.inf, -np.inf, 1e15, 1e300, 1.7e308, 5e-324]
        whole = [0, 1, 255, 2**62, -1, -(2**62)]
        value = rng.choice(values if changed.dtype.kind == "f" else whole)
        with np.errstate(all="ignore"):
            changed.flat[place] = np.array(value).astype(changed.dtype)
    elif kind == 5:
        changed.reshape(-1).view(np.uint8)[rng.randrange(changed.nbytes)] ^= 1 << rng.randrange(8)
    elif changed.dtype.kind == "f":
        how = rng.choice(HOWS)
        with np.errstate(all="ignore"):
            changed = how(changed) if kind == 6 else changed
        if kind == 7:
            changed.flat[place] *= rng.choice([-1.0, 2.0, 0.5, 1 + 1e-9, 1e3, 1e-3])
    elif changed.dtype.kind in "iu":
        changed.flat[place] += rng.choice([1, -1]) if changed.dtype != np.uint8 else 1
        if kind == 6:
            changed = np.roll(changed, 1, axis=0)
    return changed


def forged(content, rng):
    """A file with one place changed, and a checksum that fits; None for what cannot even be written."""
    document, tensors = parts(content)
    if rng.random() < 0.4:
        document = mutated(document, rng)
    else:
        key = rng.choice(sorted(tensors))
        changed = mutated_tensor(tensors[key], rng)
        tensors[key] = changed if changed.size or changed.ndim == 1 else changed.ravel()
    try:
        return signed(document, tensors)
    except (ModelFileError, AttributeError):
        return None


# ------------------------------------------------------------------ all that can be asked of a model


METHODS = (
    "predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "decision_function",
    "score_samples", "novelty", "transform", "unseen_categories", "inverse_transform",
)  # fmt: skip
ATTRIBUTES = (
    "decision_", "moments_", "ranking_", "scores_", "stability_", "feature_importances_", "path_",
    "evidence_", "family_", "smoothing_", "class_prior_", "n_selected_", "coef_", "intercept_",
)  # fmt: skip


def fitting(model, original):
    """The rows as a model takes them that has other columns or labels than it was written with."""
    X, last = original.X, model[-1] if isinstance(model, Pipeline) else model
    first = model[0] if isinstance(model, Pipeline) else model
    names, width = getattr(first, "feature_names_in_", None), getattr(first, "n_features_in_", None)
    if isinstance(X, pd.DataFrame):
        X = X.set_axis(names, axis=1) if names is not None and len(names) == X.shape[1] else X
    elif not isinstance(X, list) and width is not None and width != X.shape[1]:
        X = X[:, np.arange(width) % X.shape[1]]
    classes = getattr(last, "classes_", np.arange(1))
    codes = np.unique(original.y, return_inverse=True)[1] % len(classes)
    return _original(original.content, X, classes[codes])


def uses(model, original) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name and call of every public method of a model, and of all that takes a model."""
    X, y = original.X, original.y
    for name in METHODS:
        method = getattr(model, name, None)
        if method is not None and name != "inverse_transform":
            yield name, lambda method=method: method(X)
        elif method is not None:
            yield name, lambda: model.inverse_transform(model.transform(X))
    for name in ("get_feature_names_out", "get_params", "__repr__", "_repr_html_", "__sklearn_tags__"):
        if hasattr(model, name):
            yield name, getattr(model, name)
    yield "clone", lambda: clone(model)
    yield "deepcopy", lambda: copy.deepcopy(model)
    yield "to_bytes", lambda: to_bytes(model)
    yield "to_bytes with moments", lambda: to_bytes(model, moments=True)
    yield "saved again", lambda: _saved_again(model, X)
    if hasattr(model, "predict"):
        yield "score", lambda: model.score(X, y)
    last = model[-1] if isinstance(model, Pipeline) else model
    if hasattr(last, "explain"):
        rows = model[:-1].transform(X) if isinstance(model, Pipeline) else X
        yield "explain rows", lambda: _told(last.explain(rows))
    if not isinstance(last, MaxDiscClassifier):
        return
    for name in ATTRIBUTES:
        yield name, lambda name=name: _seen(getattr(last, name, None))
    yield "sample", lambda: last.sample(5)
    yield "sample of a class", lambda: last.sample(3, last.classes_[0])
    yield "ranking_table", lambda: dict(last.ranking_table(n=3))
    yield "ranking_table of rows", lambda: dict(last.ranking_table(rows, y, n_permutations=5))
    yield "partial_fit", lambda: copy.deepcopy(last).partial_fit(rows, y).predict_proba(rows)
    yield "choose_n_features", lambda: copy.deepcopy(last).choose_n_features(rows, y).predict_proba(rows)
    yield "evaluate", lambda: _report(evaluate(model, X, y))
    one = X[:1] if not isinstance(X, pd.DataFrame) else X.iloc[:1]
    yield "log_odds", lambda: log_odds(model, one)


def _told(explanation):
    repr(explanation), explanation._repr_html_()
    return [explanation.total, explanation.contributions, explanation.length, explanation.top(0)]


def _saved_again(model, X):
    """What is loaded can be saved, and what is saved can be loaded, and does the same."""
    content = to_bytes(model)
    try:
        again = from_bytes(content)
    except ModelFileError as error:
        raise AssertionError(f"saved again, it is refused: {error}") from None
    for name in ("predict_log_proba", "transform"):
        before, after = (getattr(each, name, None) for each in (model, again))
        if before is not None:
            due, found = before(X), after(X)
            if not sp.issparse(due):
                np.testing.assert_equal(found.tolist(), due.tolist())


def _seen(value):
    repr(value)
    return value


def _report(report):
    return [report.html(), report.markdown(), report.json()]


def commands(path, original, folder) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name and call of every command that takes a model file, run in this process."""
    given = {
        "info": (), "info --json": (), "card": (), "rank": (), "rank --json": (),
        "export": ("-o", folder / "model.onnx", "--force"),
    }  # fmt: skip
    if original.table is not None:
        data = folder / "rows.jsonl"
        # As JSON has them: pandas would cut names at a NUL.
        rows = json.loads(original.table.to_json(orient="values"))
        lines = (json.dumps(dict(zip(original.table, row, strict=True))) for row in rows)
        data.write_text("\n".join(lines), encoding="utf-8")
        text = ("--text", "body") if isinstance(original.X, list) else ()
        labelled = ("--label", "said", *text)
        given |= {
            "predict --explain 2 --probabilities -q": (data, *text),
            "predict --json --unknown 0.01 -q": (data, *text),
            "evaluate -q": (data, *labelled),
            "compare -q": (path, data, *labelled),
            "compare -q --json": (path, data, *labelled),
            "report -q --force": ("--data", data, *labelled, "-o", folder / "judged.html"),
            "explain": (original.X[0],) if isinstance(original.X, list) else ("--data", data),
            "explain --json": (original.X[0],) if isinstance(original.X, list) else ("--data", data),
        }
    if app_of is not None:
        yield "service", lambda: asked(path, original)
    for words, rest in given.items():
        name, *options = words.split()
        yield words, lambda name=name, options=options, rest=rest: run(name, path, *options, *rest)


def asked(path, original) -> list[int]:
    """What a service that has the model answers to some requests; nothing for one that it does not take."""
    texts = isinstance(original.X, list)
    service = Service({"model": path}, Limits(), log=Log(io.StringIO()), reload_seconds=0)
    with TestClient(app_of(service), raise_server_exceptions=False) as client:
        while not service.ready and service.failed is None:
            time.sleep(0.001)
        if service.failed is not None:
            if isinstance(service.failed, ValueError):
                return []
            raise service.failed
        body = {"texts": original.X[:2]} if texts else {"rows": [{}]}
        one = {"text": original.X[0]} if texts else {"row": {}}
        found = [client.get(page) for page in ("/model", "/ranking", "/readyz")]
        found += [client.post("/predict", json=body), client.post("/explain", json=one)]
    told = [(answer.status_code, answer.text[:200]) for answer in found if answer.status_code >= 500]
    if told:
        raise CommandError(str(told))
    return [answer.status_code for answer in found]


class CommandError(Exception):
    """What a command says that ends with another code than 0."""


def run(*arguments):
    """Run a command in this process; raise what it says if it fails."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    if code:
        raise CommandError(f"{code}: {err.getvalue().strip()}")
    out.flush()
    return out.buffer.getvalue()


# ------------------------------------------------------------------ the law


#: What parameters ask for that an honest file may hold, too.
ASKED = re.compile(
    "|".join([
        r"^ValueError: (partial_fit|choose_n_features) keeps sums for each feature alone, and .* use fit",
        r"^ValueError: partial_fit sees one batch at a time, and class_weight='balanced' needs",
        r"^ValueError: redundancy is of numbers of one family",
        r"^AttributeError: This 'MaxDiscClassifier' has no attribute 'partial_fit'",
        r"^ValueError: novelty compares rows with held-out ones, and this model has learnt from none",
    ])
)  # fmt: skip


def require_usable(answer, name):
    """Raise ``AssertionError`` for an answer with a NaN or an infinity; only scores may be minus infinity."""
    if isinstance(answer, dict):
        for column, values in answer.items():
            require_usable(values, f"{name}, {column},")
    if isinstance(answer, list | tuple):
        for each in answer:
            require_usable(each, name)
    if sp.issparse(answer):
        answer = answer.data
    of_model = name not in ("transform", "inverse_transform")
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "f" and of_model:
        assert not np.isnan(answer).any(), f"{name} is NaN"
        # Of two classes of which one cannot be, the intercept is infinite.
        assert name == "intercept_" or not np.isposinf(answer).any(), f"{name} is infinite"
        if name in ("predict_proba", "partial_fit", "choose_n_features"):
            np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-9)
        if name == "novelty":
            assert ((answer > 0) & (answer <= 1)).all()


def ended(use, name):
    """What comes of a use: None for an answer or a ModelFileError, else what is wrong, in one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            require_usable(use(), name)
    except ModelFileError:
        return None
    except (Exception, SystemExit) as error:
        if ASKED.search(f"{type(error).__name__}: {error}"):
            return None
        return f"{type(error).__name__}: {error}"
    return None


#: What takes longer than all others together: of each file, one of them.
COSTLY = (
    "service", "evaluate", "report -q --force", "export", "rank", "choose_n_features", "compare -q",
    "compare -q --json", "rank --json", "evaluate -q",
)  # fmt: skip


def found_wrong(path, original, folder, rng=None, only=None):
    """What is wrong with the uses of a file, or with one of them, by name; None where it cannot be loaded."""
    for read in (describe, load):
        try:
            model = read(path)
        except ModelFileError as error:
            assert "\n" not in str(error)
            if read is load:
                return None
    one, found, original = None if rng is None else rng.choice(COSTLY), {}, fitting(model, original)
    for name, use in [*uses(model, original), *commands(path, original, folder)]:
        if only in (None, name) and (one in (None, name) or name not in COSTLY):
            wrong = ended(use, name)
            if wrong is not None:
                found[name] = wrong
    return found


@cache
def _usual(name, use):
    """What a file that is as it was written says when it cannot do something; None where it can."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "original.maxdisc")
        path.write_bytes(originals()[name].content)
        found = found_wrong(path, originals()[name], Path(folder), only=use)
    return None if use not in found else _said(found[use], path)


def _said(wrong, path):
    return wrong.replace(str(path), "").replace(path.name, "")


def forgeries(count, folder, seed=0):
    """Forge as many files; return how many could be loaded, and what was wrong with them."""
    loaded, wrong, names = 0, [], sorted(originals())
    path = folder / "forged.maxdisc"
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        name = names[number % len(names)]
        content = forged(originals()[name].content, rng)
        if content is None:
            continue
        path.write_bytes(content)
        found = found_wrong(path, originals()[name], folder, rng)
        loaded += found is not None
        for use, said in (found or {}).items():
            if _said(said, path) != _usual(name, use):
                wrong.append((number, name, use, said))
    return loaded, wrong
