"""Model files from elsewhere: what they say of themselves is shown, but neither obeyed nor trusted."""

from __future__ import annotations

import pytest
from sklearn.pipeline import Pipeline

from maxdisc import DiscriminativeMaxEnt, MaxDiscClassifier, TermFrequencyVectorizer, save

ESCAPE = "\x1b[31mred\x9b\u202e"


def fitted(first="space"):
    model = Pipeline(
        [
            ("vectorizer", TermFrequencyVectorizer(stop_words=[ESCAPE])),
            ("classifier", MaxDiscClassifier("poisson", n_features=5, smoothing=1.0)),
        ]
    )
    bodies = ["the moon and a rocket", "the ice and a puck", "moon rocket orbit", "ice puck team"] * 5
    return model.fit(bodies, [first, "hockey"] * 10)


@pytest.mark.parametrize(
    "arguments",
    [
        ("info",),
        ("card",),
        ("rank",),
        ("rank", "--class", ESCAPE),
        ("evaluate", "{data}"),
        ("explain", "ice " + ESCAPE),
    ],
)
def test_no_escape_reaches_the_terminal(run, tmp_path, arguments):
    path = tmp_path / f"{ESCAPE}.maxdisc"
    save(
        fitted(ESCAPE),
        path,
        about={"rows": 3, "sources": [ESCAPE], "label": "topic", "text": "body", "note": ESCAPE},
    )
    data = tmp_path / "data.csv"
    data.write_text(f"body,topic\nmoon,{ESCAPE}\nice,hockey\n", encoding="utf-8")
    command, *rest = (argument.format(data=data) for argument in arguments)
    done = run(command, path, *rest)
    assert done.code == 0, done.err
    assert "red" in done.out
    assert not set(done.out + done.err) & set("\x1b\x9b\u202e")


def test_fit_shows_the_name_of_its_model_without_escapes(run, files, tmp_path):
    done = run("fit", files / "iris.csv", "-o", tmp_path / f"{ESCAPE}.maxdisc")
    assert done.code == 0
    assert "red" in done.out
    assert "\x1b" not in done.out


@pytest.mark.parametrize(
    "about",
    [
        {"rows": "x"},
        {"rows": None},
        {"rows": 3, "sources": 5},
        {"text": 5},
        {"text": {"a": 1}},
        {"label": [1]},
        {"note": ["a"]},
    ],
)
def test_what_a_file_says_of_its_data_may_be_nonsense(run, files, tmp_path, about):
    path = tmp_path / "m.maxdisc"
    save(fitted(), path, about=about)
    assert run("info", path).code == 0
    assert run("card", path).code == 0
    assert run("evaluate", path, files / "test.csv", "--text", "body", "--label", "topic").code == 0
    assert run("predict", path, files / "test.csv", "--text", "body").code == 0


def test_words_alone_can_be_looked_at_but_not_used(run, files, tmp_path):
    path = tmp_path / "words.maxdisc"
    save(TermFrequencyVectorizer().fit(["some words", "more words"]), path)
    done = run("info", path)
    assert done.code == 0
    assert "without a classifier" in done.out
    done = run("predict", path, files / "test.csv")
    assert done.code == 2
    assert done.err.count("\n") == 1


def test_a_report_of_one_class(run, files, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("body,topic\nthe moon,space\na rocket,space\n")
    done = run("report", files / "topics.maxdisc", "--data", data, "-o", tmp_path / "report.md")
    assert done.code == 0, done.err
    assert (tmp_path / "report.md").exists()


def test_columns_that_are_kept_keep_apart(run, files, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("body,label,given_label\nthe moon,1,2\n")
    arguments = ("predict", files / "topics.maxdisc", data, "--keep", "label,given_label")
    (row,) = run(*arguments).rows
    assert (row["given_given_label"], row["given_label"], row["label"]) == ("1", "2", "space")


def test_a_discriminative_model_is_told_and_otherwise_left_to_python(run, files, tmp_path):
    path = tmp_path / "discriminative.maxdisc"
    save(DiscriminativeMaxEnt(penalty=3.0).fit([[0.0], [1.0]], ["a", "b"]), path)
    done = run("info", path)
    assert done.code == 0
    assert "2: a, b" in done.out
    assert "discriminative" in done.out
    assert "penalty" in done.out
    for arguments in (("predict", path, files / "iris.csv"), ("rank", path), ("explain", path, "1")):
        refused = run(*arguments)
        assert refused.code == 2
        assert f"{path} holds a discriminative model" in refused.err
        assert "in Python" in refused.err
        assert refused.err.count("\n") == 1
