"""Model cards: figures of the model itself, notes of users as text, and the same facts in ONNX graphs."""

from __future__ import annotations

import hashlib

import pytest
from sklearn.dummy import DummyClassifier

from maxdisc import DiscriminativeMaxEnt, MaxDiscClassifier, load, save
from maxdisc.inspection.ranking import ranking_table
from maxdisc.model_file import describe
from tests.cli.conftest import iris_rows

NOTE = "Irises of 1936.\n\n<script>alert(1)</script> *not* for | decisions"


def cells(card, name):
    """The cells of the row of a card that begins with a name."""
    (row,) = [line for line in card.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in row.strip("|").split(" | ")][1:]


@pytest.fixture(scope="module")
def noted(files, tmp_path_factory):
    from maxdisc.cli import main

    path = tmp_path_factory.mktemp("noted") / "irises.maxdisc"
    assert main(["fit", str(files / "iris.csv"), "-o", str(path), "--note", NOTE, "-q"]) == 0
    return path


def test_a_card_has_the_figures_of_the_model(run, noted, tmp_path):
    done = run("card", noted, "-o", tmp_path / "card.md")
    assert (done.code, done.out, done.err) == (0, "", "")
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert card == run("card", noted).out
    model = load(noted)
    assert cells(card, "SHA-256") == [hashlib.sha256(noted.read_bytes()).hexdigest()]
    assert cells(card, "training rows") == ["150"]
    assert cells(card, "files") == ["iris.csv"]
    assert cells(card, "label column") == ["species"]
    assert cells(card, "this model") == [
        f"{100 * model.evidence_.accuracy:.1f} %",
        f"{model.evidence_.log_loss:.4f}",
    ]
    species = [row["species"] for row in iris_rows()]
    share = DummyClassifier().fit(species, species).score(species, species)
    assert cells(card, "always setosa; class shares as probabilities")[0] == f"{100 * share:.1f} %"
    table = ranking_table(model, n=1, per_class=8)
    for label in model.classes_:
        told = cells(card, label)
        assert told[0] == f"{100 / 3:.1f} %"
        names = [name.replace("_", r"\_") for name, _, _ in table.of_class(label, 8)]
        assert told[1].replace("\N{MINUS SIGN}", "").split(", ") == names
    assert "It knows 3 classes" in card


def test_a_note_is_kept_and_shown_as_text(run, noted):
    assert describe(noted)["about"]["note"] == NOTE
    card = run("card", noted).out
    assert "\n\nIrises of 1936.\n\n\\<script\\>alert(1)\\</script\\> \\*not\\* for \\| decisions\n\n" in card
    assert "note" in run("info", noted).out


def test_without_a_note_there_is_none(run, files, tmp_path):
    card = run("card", files / "topics.maxdisc").out
    assert card.startswith("# Model card: topics.maxdisc\n\n## File\n")
    assert "Words that no training document had are ignored." in card
    done = run("fit", files / "iris.csv", "-o", tmp_path / "m", "--note", "x" * 10_001)
    assert done.code == 2
    assert done.err == "maxdisc: --note has 10,001 characters: give at most 10,000.\n"
    assert not (tmp_path / "m").exists()


def test_what_is_not_known_is_not_made_up(run, tmp_path):
    X, y = [[1.0], [2.0], [3.0], [5.0]], ["a", "b", "a", "b"]
    save(MaxDiscClassifier(evidence="raw", n_features="all", smoothing=1.0).fit(X, y), tmp_path / "m")
    card = run("card", tmp_path / "m").out
    assert cells(card, "training rows") == ["not recorded"]
    assert "No rows were held out" in card
    assert "Its probabilities are not calibrated" in card
    assert "It cannot detect rows that fit none." in card


def test_few_rows_and_rare_classes_are_named(run, files, tmp_path):
    rows = "".join(f"{i % 7 + (i == 50)},{'rare' if i in (50, 51) else 'ab'[i % 2]}\n" for i in range(120))
    (tmp_path / "rows.csv").write_text("x,y\n" + rows)
    assert run("fit", tmp_path / "rows.csv", "-o", tmp_path / "m").code == 0
    assert "1 class has less than 2.0 % of the rows: rare." in run("card", tmp_path / "m").out
    save(load(files / "iris.maxdisc"), tmp_path / "few", about={"rows": 12})
    assert "It was fitted on 12 rows, which is few." in run("card", tmp_path / "few").out


def test_refusals(run, files, noted, tmp_path):
    save(DiscriminativeMaxEnt().fit([[0.0], [1.0]], [0, 1]), tmp_path / "m")
    for arguments, message in (
        ((tmp_path / "no.maxdisc",), "does not exist"),
        ((tmp_path / "m",), "discriminative model"),
        ((files / "iris.csv",), "iris.csv"),
        ((noted, "-o", noted), "both input and output"),
        ((noted, "-o", noted, "--force"), "both input and output"),
        ((noted, "-o", tmp_path / "m"), "replace it with --force"),
    ):
        done = run("card", *arguments)
        assert done.code == 2
        assert done.out == ""
        assert done.err.count("\n") == 1
        assert message in done.err


def test_onnx_graphs_have_the_facts_as_metadata(run, noted, tmp_path):
    onnx = pytest.importorskip("onnx")
    assert run("export", noted, "-o", tmp_path / "m.onnx").code == 0
    found = {entry.key: entry.value for entry in onnx.load(tmp_path / "m.onnx").metadata_props}
    model = load(noted)
    assert found["maxdisc.note"] == NOTE
    assert found["maxdisc.model_file_sha256"] == hashlib.sha256(noted.read_bytes()).hexdigest()
    assert found["maxdisc.held_out_accuracy"] == f"{model.evidence_.accuracy:.4f}"
    assert found["maxdisc.majority_accuracy"] == "0.3333"
    assert found["maxdisc.rows"] == "150"
    save(DiscriminativeMaxEnt().fit([[0.0], [1.0]], [0, 1]), tmp_path / "d")
    assert run("export", tmp_path / "d", "-o", tmp_path / "d.onnx").code == 0
    assert not onnx.load(tmp_path / "d.onnx").metadata_props
