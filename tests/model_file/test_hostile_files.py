"""Whatever a file holds, ``load`` gives a sound model or says in one line that there is none."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
import zlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxdisc import DiscriminativeMaxEnt, MaxDiscClassifier, ModelFileError, load, save
from maxdisc.model_file import describe
from maxdisc.model_file.container import CHECKSUM, Container
from maxdisc.model_file.values import encoded_strings
from tests.conftest import examples
from tests.model_file.forgery import FIXTURES, forged, mutated, originals, parts, signed

TABLE = (FIXTURES / "table.maxdisc").read_bytes()
FILES = {path.stem: path.read_bytes() for path in sorted(FIXTURES.glob("*.maxdisc"))}


def signed_header(header, data):
    """A file of any header, as an object or as text, with a checksum that fits if it has a place for one."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    content = bytearray(struct.pack("<Q", len(text)) + text + data)
    if isinstance(header, dict) and isinstance(header.get(CHECKSUM), dict):
        begin = 8 + len(text) + header[CHECKSUM]["data_offsets"][0]
        content[begin : begin + 32] = bytes(32)
        pieces = (content[i : i + 2**20] for i in range(0, len(content), 2**20))
        sums = b"".join(zlib.crc32(piece).to_bytes(4, "little") for piece in pieces)
        content[begin : begin + 32] = hashlib.sha256(sums).digest()
    return bytes(content)


def header_and_data(content=TABLE):
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def refused(path, content, words=""):
    path.write_bytes(content)
    for read in (load, describe) if not words else (load,):
        try:
            read(path)
        except ModelFileError as error:
            message = str(error)
            assert message.startswith(f"{path}: ")
            assert "\n" not in message
            assert len(message) < len(str(path)) + 400
            assert words in message, message
        else:
            assert read is describe, "this file was taken for a model"


def sound_or_refused(path, content):
    """The law: one line, or a model whose probabilities are probabilities, or that says what is wrong."""
    path.write_bytes(content)
    try:
        describe(path)
    except ModelFileError as error:
        assert "\n" not in str(error)
    try:
        model = load(path)
    except ModelFileError as error:
        assert "\n" not in str(error)
        return None
    classifier = (
        model if isinstance(model, MaxDiscClassifier) else getattr(model, "steps", [(0, model)])[-1][1]
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = probabilities(model)
        except ValueError:
            return model
    if found is not None:
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-9)
    repr(classifier), repr(getattr(classifier, "path_", None))
    return model


def probabilities(model):
    if not hasattr(model, "predict_proba"):
        model.transform(["die Katze the dogs"])
        return None
    of_rows = isinstance(model, MaxDiscClassifier | DiscriminativeMaxEnt)
    if not of_rows or hasattr(model, "vectorizer_"):
        return model.predict_proba(["die Katze the dogs", ""])
    X = np.vstack([np.full(model.n_features_in_, v) for v in (0.25, 1.0, 1e6)])
    if isinstance(model, MaxDiscClassifier):
        X[0, 0] = np.nan
    names = getattr(model, "feature_names_in_", None)
    return model.predict_proba(X if names is None else pd.DataFrame(X, columns=names))


def test_the_corpus_itself_is_sound(tmp_path):
    for content in FILES.values():
        assert sound_or_refused(tmp_path / "m", content) is not None
        assert signed(*parts(content)) == content


# ------------------------------------------------------------------ damage


def test_a_file_cut_short_anywhere_is_refused(tmp_path):
    rng = random.Random(0)
    for length in {*range(64), *rng.sample(range(len(TABLE)), 150), len(TABLE) - 1}:
        refused(tmp_path / "m", TABLE[:length])
    refused(tmp_path / "m", TABLE + b"\0")


@pytest.mark.parametrize("name", FILES)
def test_no_bit_can_be_flipped_unnoticed(tmp_path, name):
    rng = random.Random(1)
    content = FILES[name]
    for place in rng.sample(range(8 * len(content)), examples(400).max_examples):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        refused(tmp_path / "m", bytes(flipped))


def test_every_bit_of_the_checksum_and_the_length_counts(tmp_path):
    place = Container.of(TABLE).checksum
    for byte in (*range(8), *range(place.begin, place.end)):
        for bit in range(8):
            flipped = bytearray(TABLE)
            flipped[byte] ^= 1 << bit
            refused(tmp_path / "m", bytes(flipped))


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.maxdisc"
    refused(path, content)
    refused(path, struct.pack("<Q", len(content)) + content)


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("../../evil.py", "import os")
    return file.getvalue()


class Bomb:
    def __reduce__(self):
        return os._exit, (13,)


@pytest.mark.parametrize(
    "content",
    [b"", pickle.dumps(Bomb()), zipped(), b"\x80\x04." * 50, b"{}" * 20, bytes(1000), b"\xff" * 1000],
    ids=["empty", "pickle", "zip", "pickles", "json", "zeros", "ones"],
)
def test_other_files_are_refused(tmp_path, content):
    refused(tmp_path / "m", content, "this is not a model file of maxdisc")


def test_missing_files_folders_and_pipes(tmp_path):
    for path, words in [(tmp_path / "none", "No such file"), (tmp_path, "this is not a file")]:
        with pytest.raises(ModelFileError, match=words):
            load(path)
    if os.name == "posix":
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="this is not a file"):
            load(tmp_path / "pipe")


# ------------------------------------------------------------------ headers that are signed, and wrong


def with_entry(**changes):
    header, data = header_and_data()
    header["decision.weights"] = header["decision.weights"] | changes
    return signed_header(header, data)


def without_metadata(document=None, **others):
    header, data = header_and_data()
    header["__metadata__"] = ({} if document is None else {"maxdisc": document}) | others
    return signed_header(header, data)


def overlapping():
    header, data = header_and_data()
    header["twin"] = header["decision.weights"]
    return signed_header(header, data)


def gap():
    header, data = header_and_data()
    for entry in (e for name, e in header.items() if name != "__metadata__"):
        entry["data_offsets"] = [offset + 8 for offset in entry["data_offsets"]]
    return signed_header(header, bytes(8) + data)


def beyond():
    begin, end = header_and_data()[0]["decision.weights"]["data_offsets"]
    return [begin + 2**40, end + 2**40]


DOCUMENT = header_and_data()[0]["__metadata__"]["maxdisc"]
HEADERS = {
    "overlap": (overlapping, "do not fill it"),
    "gap": (gap, "do not fill it"),
    "huge shape": (lambda: with_entry(shape=[2**62, 2**62, 4]), "wrong about the tensor"),
    "shape that overflows": (lambda: with_entry(shape=[2**32, 2**32, 1]), "wrong about the tensor"),
    "empty and huge": (lambda: with_entry(shape=[0, 2**62], data_offsets=[0, 0]), "wrong about the tensor"),
    "negative": (lambda: with_entry(shape=[-2, -3, 4]), "wrong about the tensor"),
    "float": (lambda: with_entry(shape=[2.0, 3, 4]), "wrong about the tensor"),
    "bool": (lambda: with_entry(shape=[True, 3, 8]), "wrong about the tensor"),
    "no axes": (lambda: with_entry(shape=[]), "wrong about the tensor"),
    "beyond the end": (lambda: with_entry(data_offsets=beyond()), "do not fill it"),
    "backwards": (lambda: with_entry(data_offsets=[192, 0]), "wrong about the tensor"),
    "dtype": (lambda: with_entry(dtype="O"), "wrong about the tensor"),
    "dtype of a list": (lambda: with_entry(dtype=["F64"]), "wrong about the tensor"),
    "further keys": (lambda: with_entry(path="/etc/passwd"), "wrong about the tensor"),
    "no metadata": (lambda: without_metadata(), "its header does not say so"),
    "other metadata": (lambda: without_metadata(DOCUMENT, x="y"), "other entries"),
    "deep": (lambda: without_metadata("[" * 100_000), "is not JSON"),
    "deep pairs": (lambda: without_metadata('{"a":' * 100_000), "is not JSON"),
    "deep header": (lambda: signed_header(b"[" * 100_000, b""), "is not JSON"),
    "twice": (lambda: without_metadata(DOCUMENT[:-1] + ', "format": 1}'), "is not JSON"),
    "NaN": (lambda: without_metadata(DOCUMENT.replace('"format": 1', '"format": NaN')), "is not JSON"),
    "1e999": (lambda: without_metadata(DOCUMENT.replace('"format": 1', '"format": 1e999')), "is not JSON"),
    "long number": (lambda: without_metadata(DOCUMENT.replace("1", "9" * 5000, 1)), "is not JSON"),
    "UTF-16": (lambda: signed_header(json.dumps(header_and_data()[0]).encode("utf-16"), b""), "is not JSON"),
    "newer": (
        lambda: without_metadata('{"format": 6, "what": "ever"}'),
        "written by a newer maxdisc (format 6); this one reads up to 5: install at least the version that",
    ),
    "no format": (lambda: without_metadata("{}"), "which format"),
    "format of text": (lambda: without_metadata('{"format": "1"}'), "which format"),
    "format of truth": (lambda: without_metadata('{"format": true}'), "which format"),
    "format 0": (lambda: without_metadata('{"format": 0}'), "which format"),
    "header longer than the file": (lambda: struct.pack("<Q", 2**63) + TABLE[8:], "not all of it"),
    "header beyond the limit": (lambda: struct.pack("<Q", 2**25) + b"{}" + b" " * 2**25, "not a model file"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_wrong_header_is_refused(tmp_path, name):
    make, words = HEADERS[name]
    refused(tmp_path / "m", make(), words)


def test_a_misaligned_file_is_refused(tmp_path):
    text = TABLE[8 : 8 + int.from_bytes(TABLE[:8], "little")] + b" "
    refused(
        tmp_path / "m", struct.pack("<Q", len(text)) + text + header_and_data()[1], "wrong about the tensor"
    )


# ------------------------------------------------------------------ tensors that are signed, and wrong


def changed_tensor(name, change, base=TABLE):
    document, tensors = parts(base)
    tensors[name] = change(tensors[name])
    return signed(document, tensors)


def put(index, value):
    def change(tensor):
        tensor = tensor.copy()
        tensor[index] = value
        return tensor

    return change


ORDER = ("decision.columns", "ranking.order")
TENSORS = {
    "a mean beyond all values": ("moments.observed", put((2, 0), 5e-324), "moments are invalid"),
    "columns out of range": ("decision.columns", put(0, 10**12), "does not keep the best"),
    "columns twice": ("decision.columns", lambda t: np.zeros_like(t), "does not keep the best"),
    "order out of range": ("ranking.order", put(0, -1), "no order of its features"),
    "order twice": ("ranking.order", put(0, 1), "no order of its features"),
    "NaN weight": ("decision.weights", put((0, 0, 0), np.nan), "NaN or an infinity"),
    "infinite baseline": ("decision.baseline", put((0, 0), np.inf), "NaN or an infinity"),
    "another baseline": ("decision.baseline", lambda t: t + 1, "integrate to 1"),
    "positive curvature": ("decision.weights", lambda t: -t, "integrate to 1"),
    "single precision": ("decision.weights", lambda t: t.astype(np.float32), "not float64"),
    "flat": ("decision.weights", lambda t: t.ravel(), "of shape"),
    "a class more": ("decision.baseline", lambda t: np.vstack([t, t[:1]]), "of shape"),
    "a feature less": ("ranking.scores", lambda t: t[:-1], "of shape"),
    "prior": ("class_prior", lambda t: t * 2, "probabilities"),
    "negative prior": ("class_prior", lambda t: t * 0 + [-1.0, 1.0, 1.0], "probabilities"),
    "log prior": ("decision.log_prior", put(0, np.nan), "probabilities"),
    "infinite log prior": ("decision.log_prior", put(0, np.inf), "probabilities"),
    "sizes": ("path.sizes", lambda t: t[::-1], "path of accuracies"),
    "sizes of 0": ("path.sizes", put(0, 0), "path of accuracies"),
    "accuracy": ("path.accuracy", put((0, 0), 1.5), "path of accuracies"),
    "no weight": ("path.weight", lambda t: t * 0, "path of accuracies"),
    "moments of NaN": ("moments.sums", put((0, 0, 0), np.nan), "NaN or an infinity"),
    "negative moments": ("moments.observed", put((0, 0), -1.0), "moments are invalid"),
    "moments of too much weight": ("moments.weight", lambda t: t * 1e200, "moments are invalid"),
    "moments of no weight": ("moments.weight", lambda t: t * 0, "moments are invalid"),
    "more cells than rows": ("moments.observed", put((0, 0), 1e6), "moments are invalid"),
    "squares below a mean's": (
        "moments.sums",
        lambda t: t + np.array([[[99.0]], [[0.0]]]),
        "moments are invalid",
    ),
    "an origin beyond all numbers": ("decision.origin", put(0, 1e200), "beyond all numbers"),
    "scores beyond all numbers": ("ranking.scores", put(0, 1e308), "scores are beyond all numbers"),
    "losses beyond all numbers": ("path.log_loss", put((0, 0), 1e300), "path of accuracies"),
    "names too few": ("names.offsets", lambda t: t[[0, -1]], "names for"),
    "names backwards": ("names.offsets", put(1, 10**6), "not in order"),
    "names from 1": ("names.offsets", put(0, 1), "not in order"),
    "no names": ("names.offsets", lambda t: t[:0], "not in order"),
    "names of int32": ("names.offsets", lambda t: t.astype(np.int32), "not stored as strings"),
    "names not UTF-8": ("names.bytes", lambda t: t | 0x80, "not UTF-8"),
    "classes out of order": ("classes.bytes", put(0, ord("z")), "classes are not in order"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_wrong_tensors_are_refused(tmp_path, name):
    tensor, change, words = TENSORS[name]
    refused(tmp_path / "m", changed_tensor(tensor, change), words)


DISCRIMINATIVE = {
    "NaN weight": ("coef", put((0, 0), np.nan), "NaN or an infinity"),
    "infinite bias": ("intercept", put(0, np.inf), "NaN or an infinity"),
    "a class less": ("coef", lambda t: t[:-1], "of shape"),
    "a bias more": ("intercept", lambda t: np.append(t, 0.0), "of shape"),
    "a feature less": ("coef", lambda t: t[:, :-1], "names for"),
    "flat": ("coef", lambda t: t.ravel(), "of shape"),
    "single precision": ("coef", lambda t: t.astype(np.float32), "not float64"),
    "no path": ("objective_path", lambda t: t[:0], "no value of its objective"),
    "path of NaN": ("objective_path", put(0, np.nan), "NaN or an infinity"),
    "classes out of order": ("classes.bytes", put(0, ord("z")), "classes are not in order"),
}


OTHERS = {
    "too few cells that are not zero": ("text", "1.moments.nonzero", put(0, 5e-324), "moments are invalid"),
    "counts below zero": ("text", "1.moments.sums", lambda t: -t, "moments are invalid"),
    "presence in too many rows": ("presence", "moments.sums", lambda t: t + 99, "moments are invalid"),
    "a large weight": ("presence", "decision.weights", put((0, 0, 0), 1e300), "beyond all numbers"),
    "an origin of counts": ("without-moments", "decision.origin", lambda t: t + 1, "beyond all numbers"),
    "a large bias": ("weighed-refined", "evidence.bias", put(0, 1e300), "weights of its evidence"),
    "a small strength": ("weighed-refined", "evidence.weights", put(0, 5e-324), "weights of its evidence"),
    "very strange rows": ("novelty", "novelty.unknown", put(0, 1e300), "table of p-values"),
    "a large rate": ("averaged-refined", "form0.rate", put(0, 1e200), "beyond all numbers"),
    "a large coefficient": ("discriminative-table", "coef", put((0, 0), 1e300), "beyond all numbers"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_numbers_that_no_rows_can_have_are_refused(tmp_path, name):
    base, tensor, change, words = OTHERS[name]
    refused(tmp_path / "m", changed_tensor(tensor, change, FILES[base]), words)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("lengths.counts", lambda t: np.where(t > 0, 1e16 + 2 * np.arange(len(t)), 0)),  # with equal logs
        ("lengths.weights", put((0, 0), 1e200)),
        ("lengths.bias", put((0, 0), -1e200)),
    ],
)
def test_weights_by_length_that_are_none_are_refused(tmp_path, name, change):
    content = originals()["lengths"].content
    refused(tmp_path / "m", changed_tensor(f"1.{name}", change, content), "of its evidence by length")


def test_a_file_does_not_say_how_many_threads_there_are(tmp_path):
    content = changed_document(lambda d: d["model"]["parameters"].update(n_jobs=10**6))
    (tmp_path / "m").write_bytes(content)
    assert load(tmp_path / "m").n_jobs is None


def test_what_load_would_refuse_is_not_saved(tmp_path):
    model = load(FIXTURES / "table.maxdisc").set_params(n_features=99)
    with pytest.raises(ModelFileError, match="more than the 4 features"):
        save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", DISCRIMINATIVE)
def test_wrong_tensors_of_a_discriminative_model_are_refused(tmp_path, name):
    tensor, change, words = DISCRIMINATIVE[name]
    refused(tmp_path / "m", changed_tensor(tensor, change, FILES["discriminative-table"]), words)


def dual_that_ended(how):
    def change(document):
        document["format"] = 3
        document["model"]["fitted"]["dual"] = how

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["model"]["fitted"].update(converged=1), "which is invalid"),
        (lambda d: d["model"]["fitted"].pop("converged"), "are due"),
        (lambda d: d["model"]["parameters"].update(family="gaussian"), "parameters that this version"),
        (lambda d: d["model"].update(kind="classifier"), "are due"),
        (lambda d: d["model"].update(kind="vectorizer"), "are due"),
        (lambda d: d["model"]["fitted"].update(solver="guess"), "are due"),
        (dual_that_ended({"n_iter": 3}), "are due"),
        (dual_that_ended({"n_iter": -1, "gap": 0.1}), "its dual solver ended as"),
        (dual_that_ended({"n_iter": 3, "gap": -0.1}), "its dual solver ended as"),
        (dual_that_ended({"n_iter": 3, "gap": "small"}), "its dual solver ended as"),
        (lambda d: d["model"]["fitted"].update(dual={"n_iter": 3, "gap": 0.1}), "format 3"),
        (lambda d: d.update(format=1), "format 2"),
    ],
)
def test_a_wrong_document_of_a_discriminative_model_is_refused(tmp_path, change, words):
    refused(tmp_path / "m", changed_document(change, FILES["discriminative-table"]), words)


def test_one_class_is_no_discriminative_model(tmp_path):
    document, tensors = parts(FILES["discriminative-table"])
    tensors["classes.offsets"] = tensors["classes.offsets"][:2]
    tensors["classes.bytes"] = tensors["classes.bytes"][: tensors["classes.offsets"][1]]
    tensors["coef"], tensors["intercept"] = tensors["coef"][:1], tensors["intercept"][:1]
    refused(tmp_path / "m", signed(document, tensors), "fewer than two classes")


def test_nothing_comes_after_a_discriminative_model(tmp_path):
    document, tensors = parts(FILES["discriminative-text"])
    steps = document["model"]["steps"]
    steps.append(["another", steps[1][1]])
    tensors |= {"2." + name[2:]: t for name, t in tensors.items() if name.startswith("1.")}
    refused(tmp_path / "m", signed(document, tensors), "do not fit each other")


JOINT_TENSORS = {
    "columns twice": ("decision.columns", lambda t: np.zeros_like(t), "does not keep the best"),
    "NaN": ("decision.center", put((0, 0), np.nan), "NaN or an infinity"),
    "a factor too long": ("decision.factor", lambda t: 10 * t, "integrate to 1"),
    "a factor that is not orthogonal": ("decision.factor", lambda t: np.full_like(t, 0.1), "integrate to 1"),
    "a negative rate": ("decision.rate", lambda t: -t, "integrate to 1"),
    "no precision": ("decision.tail", lambda t: 0 * t, "integrate to 1"),
    "two covariances for three classes": (
        "decision.tail", lambda t: np.repeat(t, 2), "decision.factor is float64"
    ),
    "a negative unit": ("decision.unit", lambda t: -t, "integrate to 1"),
    "a unit that no deviation has": ("decision.unit", put(0, 5e-324), "integrate to 1"),
    "a rate that no deviation has": ("decision.rate", put(0, 1e-300), "integrate to 1"),
    "a mean that no value has a log of": ("decision.origin", put(0, 1e15), "integrate to 1"),
    "a class mean that no value has a log of": ("decision.center", put((0, 0), 1e15), "integrate to 1"),
    "a factor of nearly all": (
        "decision.factor", lambda t: np.eye(*t.shape[1:])[None] * (1 - 1e-16), "integrate to 1"
    ),
    "a unit less": ("decision.unit", lambda t: t[1:], "of shape"),
    "prior": ("class_prior", lambda t: t * 2, "probabilities"),
}  # fmt: skip


AVERAGED_TENSORS = {
    "columns twice": ("decision.columns", lambda t: np.zeros_like(t), "does not keep the best"),
    "columns of a form twice": ("form0.columns", lambda t: np.zeros_like(t), "average is invalid"),
    "a column too high": ("form1.columns", put(0, 10**6), "average is invalid"),
    "a column of the density too low": ("density.columns", put(0, -1), "average is invalid"),
    "NaN": ("form0.weights", put((0, 0), np.nan), "NaN or an infinity"),
    "an infinity": ("form1.baseline", put((0, 0), np.inf), "NaN or an infinity"),
    "a class less": ("form0.weights", lambda t: t[1:], "of shape"),
    "a feature less": ("form0.rate", lambda t: t[1:], "of shape"),
    "a negative rate": ("form0.rate", lambda t: -t, "average is invalid"),
    "a negative unit": ("form1.unit", lambda t: -t, "average is invalid"),
    "a mean that no value has a log of": ("density.origin", put(1, 1e15), "integrate to 1"),
    "a log that no value has": ("form1.origin", put(0, 1e15), "average is invalid"),
    "a factor too long": ("density.factor", lambda t: 10 * t, "integrate to 1"),
    "another prior": ("density.log_prior", lambda t: t - 1, "probabilities"),
    "weights that do not sum to 1": ("evidence.weights", lambda t: 2 * t, "weights of its average"),
    "a negative trust": ("evidence.trusts", lambda t: -t, "weights of its average"),
    "a model less": ("evidence.trusts", lambda t: t[1:], "of shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", AVERAGED_TENSORS)
def test_wrong_tensors_of_averages_are_refused(tmp_path, name):
    tensor, change, words = AVERAGED_TENSORS[name]
    refused(tmp_path / "m", changed_tensor(tensor, change, FILES["averaged-refined"]), words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"trust": 0.0}, "weights of its average"),
        ({"trust": 1}, "average is"),
        ({"trust": "1"}, "average is"),
        ({"forms": 3}, "average is"),
        ({"forms": -1}, "average is"),
        ({"forms": True}, "average is"),
        ({"forms": 1}, "tensors that no model has"),
        ({"accuracy": 1.5}, "weights of its average"),
        ({"n_rows": -1.0}, "weights of its average"),
        ({"more": 1.0}, "are due"),
    ],
)
def test_wrong_averages_are_refused(tmp_path, change, words):
    document, tensors = parts(FILES["averaged-refined"])
    document["model"]["fitted"]["average"] |= change
    refused(tmp_path / "m", signed(document, tensors), words)


def test_an_average_is_of_joint_densities_and_of_format_2(tmp_path):
    document, tensors = parts(FILES["averaged-refined"])
    document["format"] = 1
    refused(tmp_path / "m", signed(document, tensors), "only files of format 2 have")
    document, tensors = parts(FILES["averaged-refined"])
    document["model"]["fitted"]["joint"] = None
    refused(tmp_path / "m", signed(document, tensors), "is missing")


@pytest.mark.parametrize("name", JOINT_TENSORS)
def test_wrong_tensors_of_joint_densities_are_refused(tmp_path, name):
    tensor, change, words = JOINT_TENSORS[name]
    refused(tmp_path / "m", changed_tensor(tensor, change, FILES["joint-shared"]), words)


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        (["shared", "auto", "top", None], "joint density is"),
        (["shared", 2.0, "top", None], "does not know"),
        (["shared", 0.5, "top"], "does not know"),
        (["shared", [0.5], "top", None], "does not know"),
        (7, "does not know"),
    ],
)
def test_wrong_joint_densities_are_refused(tmp_path, joint, words):
    document, tensors = parts(FILES["joint-shared"])
    document["model"]["fitted"]["joint"] = {"joint": joint}
    refused(tmp_path / "m", signed(document, tensors), words)
    document, tensors = parts(FILES["joint-shared"])
    document["format"] = 1
    refused(tmp_path / "m", signed(document, tensors), "only files of format 2 have")


def test_two_features_do_not_have_one_name(tmp_path):
    for base in ("table", "mixed-table", "discriminative-table"):
        document, tensors = parts(FILES[base])
        names = ["a"] * (len(tensors["names.offsets"]) - 1)
        for part, array in encoded_strings(names, "names").items():
            tensors[f"names.{part}"] = array
        refused(tmp_path / "m", signed(document, tensors), "the same name")


def test_missing_and_further_tensors_are_refused(tmp_path):
    names = parts(TABLE)[1]
    optional = {"moments.nonzero", "moments.origin", "moments.observed"}
    for name in names.keys() - optional - {"names.offsets"}:
        document, tensors = parts(TABLE)
        del tensors[name]
        refused(tmp_path / "m", signed(document, tensors), f"{name} is missing")
    document, tensors = parts(TABLE)
    refused(tmp_path / "m", signed(document, tensors | {"x": np.zeros(2)}), "tensors that no model has")


def test_booleans_are_zeros_and_ones(tmp_path):
    document, tensors = parts(FILES["without-moments"])
    tensors["classes"] = np.array([0, 2], dtype=np.uint8).view(np.bool_)
    refused(tmp_path / "m", signed(document, tensors), "neither true nor false")


def test_labels_cannot_ask_for_memory(tmp_path):
    for dtype in ("<U1000000", "<U" + "9" * 30, "<U2", "<U-1", "|V8", "O", "<U²", "", None):
        document, tensors = parts(TABLE)
        document["model"]["fitted"]["labels"] = dtype
        refused(tmp_path / "m", signed(document, tensors), "labels" if dtype != "O" else "")


def changed_document(change, base=TABLE):
    document, tensors = parts(base)
    change(document)
    return signed(document, tensors)


def deep(depth):
    node = []
    for _ in range(depth):
        node = [node]
    return node


DOCUMENTS = {
    "kind": (lambda d: d["model"].update(kind="os.system"), "kind of model"),
    "kind of a list": (lambda d: d["model"].update(kind=[]), "kind of model"),
    "no parameters": (lambda d: d["model"].update(parameters=[]), "parameters are"),
    "further parameters": (lambda d: d["model"]["parameters"].update(x=1), "parameters that this version"),
    "private parameters": (lambda d: d["model"]["parameters"].update(_moments=1), "parameters that this"),
    "further entries": (lambda d: d.update(x=1), "are due"),
    "missing entries": (lambda d: d["model"]["fitted"].pop("family"), "are due"),
    "no family": (lambda d: d["model"]["fitted"].update(family="gaussian"), "family is 'gaussian'"),
    "another family": (lambda d: d["model"]["fitted"].update(family={"family": "poisson"}), "of shape"),
    "unknown family": (lambda d: d["model"]["fitted"].update(family={"family": "x"}), "does not know"),
    "divergence": (lambda d: d["model"]["fitted"].update(divergence=3), "divergence is 3"),
    "divergence of format 2": (
        lambda d: d["model"]["fitted"].update(divergence={"divergence": "jensen_shannon"}), "of format 2"
    ),
    "redundancy of format 2": (lambda d: d["model"]["parameters"].update(redundancy=1.0), "of format 2"),
    "smoothing": (lambda d: d["model"]["fitted"].update(smoothing={"smoothing": [-1.0, "own"]}), "not know"),
    "function": (lambda d: d["model"]["parameters"].update(family={"function": "eval"}), "called 'eval'"),
    "import": (lambda d: d["model"]["parameters"].update(family={"import": "os"}), "does not know"),
    "about": (lambda d: d.update(about=3), "about"),
    "another structure": (lambda d: d["model"]["parameters"].update(structure=False), "parameters are inv"),
    "more features": (lambda d: d["model"]["parameters"].update(n_features=99), "more than the 4 features"),
    "another prior": (lambda d: d["model"]["parameters"].update(prior=[1.0]), "prior must hold 3"),
    "one fold": (lambda d: d["model"]["parameters"].update(cv=1), "no number of folds"),
    "a seed of text": (lambda d: d["model"]["parameters"].update(random_state="x"), "cannot be used to seed"),
    "no threads": (lambda d: d["model"]["parameters"].update(n_jobs=0), "n_jobs must be"),
    "array of arrays": (lambda d: d["model"]["parameters"].update(prior={"array": [[1], [2]]}), "not know"),
    "words in an array": (lambda d: d["model"]["parameters"].update(prior={"array": ["x", 1]}), "not know"),
    "set of lists": (lambda d: d["model"]["parameters"].update(prior={"set": [[1]]}), "does not know"),
    "no path": (lambda d: d["model"]["fitted"].update(path=None), "tensors that no model has"),
    "no moments": (lambda d: d["model"]["fitted"].update(moments=False), "tensors that no model has"),
    "moments": (lambda d: d["model"]["fitted"].update(moments="yes"), "moments is 'yes'"),
}  # fmt: skip


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_wrong_document_is_refused(tmp_path, name):
    change, words = DOCUMENTS[name]
    refused(tmp_path / "m", changed_document(change), words)


@pytest.mark.parametrize("depth", [10, 40, 300, 450, 480, 490, 495, 600, 800, 900])
def test_deep_parameters_are_refused_long_before_the_stack_ends(tmp_path, depth):
    content = changed_document(lambda d: d["model"]["parameters"].update(prior=deep(depth)))
    refused(tmp_path / "m", content, "parameters are invalid" if depth == 10 else "nested too deeply")


def test_deep_tuples_are_refused(tmp_path):
    node = 1
    for _ in range(400):
        node = {"tuple": node}
    refused(tmp_path / "m", changed_document(lambda d: d["model"]["parameters"].update(prior=node)), "not")


def step(position):
    return lambda d: d["model"]["steps"][position][1]


PIPELINES = {
    "names twice": (lambda d: d["model"]["steps"][0].__setitem__(0, "classifier"), "no proper names"),
    "names of numbers": (lambda d: d["model"]["steps"][0].__setitem__(0, 3), "no proper names"),
    "underscores": (lambda d: d["model"]["steps"][0].__setitem__(0, "a__b"), "no proper names"),
    "no steps": (lambda d: d["model"].update(steps=[]), "not described"),
    "order of steps": (lambda d: d["model"]["steps"].reverse(), "missing"),
    "length": (lambda d: step(0)(d)["fitted"].update(mean_length=-1.0), "mean length"),
    "pattern": (lambda d: step(0)(d)["parameters"].update(token_pattern="("), "vectorizer are invalid"),
    "repeats": (lambda d: step(0)(d)["parameters"].update(token_pattern="a{99999999999}"), "are invalid"),
    "n-grams": (lambda d: step(0)(d)["parameters"].update(ngram_range=["a", 2]), "vectorizer are invalid"),
    "stop words": (lambda d: step(0)(d)["parameters"].update(stop_words=[1]), "vectorizer are invalid"),
    "pipelines": (lambda d: d["model"]["steps"][0].__setitem__(1, dict(d["model"], steps=[])), "are due"),
}  # fmt: skip


@pytest.mark.parametrize("name", PIPELINES)
def test_a_wrong_pipeline_is_refused(tmp_path, name):
    change, words = PIPELINES[name]
    refused(tmp_path / "m", changed_document(change, FILES["text"]), words)


def test_a_vocabulary_of_another_size_is_refused(tmp_path):
    def change(offsets):
        return np.delete(offsets, 1)

    refused(tmp_path / "m", changed_tensor("0.terms.offsets", change, FILES["text"]), "do not fit each other")


# ------------------------------------------------------------------ memory


def test_memory_is_that_of_the_file(tmp_path):
    """Peak memory while hostile files are refused stays below some times their size."""
    cases = [make() for make, _ in HEADERS.values()] + [
        changed_tensor(tensor, change) for tensor, change, _ in TENSORS.values()
    ]
    long_label = {"array": ["x" * 500_000, *[""] * 50_000]}
    cases.append(changed_document(lambda d: d["model"]["parameters"].update(prior=long_label)))
    path = tmp_path / "m"
    for content in cases:
        path.write_bytes(content)
        tracemalloc.start()
        try:
            load(path)
        except ModelFileError:
            pass
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 40 * len(content) + 10**6


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS")
def test_hostile_files_do_not_need_memory(tmp_path):
    """In a process that may not have much more than it has already."""
    cases = [make() for make, _ in HEADERS.values()]
    for number, content in enumerate(cases):
        (tmp_path / str(number)).write_bytes(content)
    code = """
import os, resource, sys
from pathlib import Path
from maxdisc import ModelFileError, load
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + 2**27
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for path in Path(sys.argv[1]).iterdir():
    try:
        load(path)
    except ModelFileError:
        print("refused")
"""
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["refused"] * len(cases)


# ------------------------------------------------------------------ mutations, signed


@pytest.mark.parametrize("name", FILES)
def test_mutants_are_sound_or_refused(tmp_path, name):
    rng = random.Random(name)
    survived, rounds = 0, examples(400).max_examples
    for _ in range(rounds):
        content = forged(FILES[name], rng)
        if content is None:
            continue
        survived += sound_or_refused(tmp_path / "m", content) is not None
    assert 0 < survived < rounds / 2


@examples(150)
@given(st.integers(0, 10**9), st.sampled_from(sorted(FILES)))
def test_mutated_headers_are_sound_or_refused(tmp_path_factory, seed, name):
    rng = random.Random(seed)
    header, data = header_and_data(FILES[name])
    header = mutated(header, rng)
    try:
        content = signed_header(header, data)
    except (TypeError, KeyError, IndexError, ValueError):  # no place for a checksum
        content = struct.pack("<Q", len(json.dumps(header))) + json.dumps(header).encode() + data
    sound_or_refused(tmp_path_factory.getbasetemp() / "header.maxdisc", content)
