"""The page of the service, in a real browser against a real service."""

from __future__ import annotations

import csv
import os
import re
import shutil
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from maxdisc import MaxDiscClassifier

if not os.environ.get("MAXDISC_REQUIRE_EXTRAS"):
    for module, line in (("fastapi", "'.[serve]'"), ("playwright", "playwright")):
        pytest.importorskip(module, reason=f"needs {module}: pip install {line}")

from playwright.sync_api import Browser, expect, sync_playwright

from tests.serve.watched import (
    ARGUMENTS,
    COOKING,
    SHARED,
    TOKEN,
    WORDS,
    Service,
    Visit,
    running,
    text_model,
    trees,
    wide_models,
)

HERE = Path(__file__).parent
STATIC = Path(str(files("maxdisc") / "serve" / "static"))
VIEWS = ("classify", "file", "features", "model")
TEXT = "The rocket left orbit 🚀 and the team cheered: goal! Ünïcode \U0001d4b3 butter, Moon."


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    models = {"topics": text_model(), "trees": MaxDiscClassifier().fit(*trees()), **wide_models()}
    with running(models, tmp_path_factory.mktemp("page")) as found:
        yield found


@pytest.fixture(scope="module")
def guarded(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One that asks for a token and takes little."""
    models = {"topics": service.models["topics"]}
    folder = tmp_path_factory.mktemp("guarded")
    with running(models, folder, "--max-bytes", "2048", MAXDISC_TOKEN=TOKEN) as found:
        yield found


# Of this module alone: while it is open, asyncio has a running loop, which tests elsewhere may not want.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        reason = "needs Chromium: apt-get install chromium"
        (pytest.fail if os.environ.get("MAXDISC_REQUIRE_EXTRAS") else pytest.skip)(reason)
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def visits(browser: Browser) -> Iterator[Any]:
    """Open a watched page; what it complained of fails the test."""
    opened: list[Visit] = []

    def visit(to: Service, **settings: Any) -> Visit:
        settings = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce", **settings}
        opened.append(Visit(browser.new_context(**settings).new_page(), to))
        return opened[-1]

    yield visit
    for one in opened:
        one.page.context.close()
    assert [complaint for one in opened for complaint in one.complaints] == []


@pytest.fixture
def visit(visits: Any, service: Service) -> Visit:
    return visits(service)


def law(name: str) -> str:
    """A function that the page is to run on itself; it gives what is at fault."""
    return (HERE / name).read_text(encoding="utf-8").strip().rstrip(";")


def told(odds: float) -> str:
    words = f"{abs(odds):.2f}"
    return words if float(words) == 0 else ("+" if odds > 0 else "\u2212") + words


def percent(share: float) -> str:
    if 100 * share < 0.05:
        return "<\u202f0.1\u202f%"
    return ">\u202f99.9\u202f%" if 99.95 < 100 * share < 100 else f"{100 * share:.1f}\u202f%"


def cut(text: str, start: int, end: int) -> str:
    """A piece of a text, by code units of UTF-16 as a browser counts."""
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")


def evidence_of(answer: dict[str, Any]) -> list[list[str]]:
    listed = [[each["name"], told(each["odds"])] for each in answer["features"]]
    last = [("all other", answer["rest"]), ("prior", answer["prior"]), ("sum", answer["total"])]
    return [*listed, *([name, told(odds)] for name, odds in last)]


def shown_evidence(visit: Visit) -> list[list[str]]:
    return [["all other" if row[0].startswith("all other") else row[0], row[-1]] for row in visit.bars()]


# Text


def test_typing_gives_the_models_own_answer(visit, service):
    visit.open().find("#text").press_sequentially("the rocket left orbit", delay=5)
    expect(visit.find("#answer")).to_contain_text("space")
    share = service.models["topics"].predict_proba(["the rocket left orbit"])[0].max()
    expect(visit.find("#answer")).to_have_text(f"space {percent(share)}")
    visit.find("#text").fill("")
    expect(visit.find("#answer")).to_contain_text("appear here")
    expect(visit.find("#why")).to_be_hidden()


def test_words_are_marked_where_the_service_says(visit, service):
    visit.open().classify(TEXT)
    answer = service.ask("explain", {"text": TEXT})
    spans = sorted(answer["spans"], key=lambda span: span["start"])
    assert len(spans) >= 5
    marks = visit.find("#words mark")
    assert marks.all_inner_texts() == [cut(TEXT, span["start"], span["end"]) for span in spans]
    sides = [("for" if span["odds"] >= 0 else "against") for span in spans]
    assert [name.split()[0] for name in marks.evaluate_all("all => all.map((one) => one.className)")] == sides
    assert visit.find("#words").inner_text() == TEXT
    # Stronger evidence is never marked fainter; direction is a line as well as a colour.
    strengths = [
        int(n) for n in marks.evaluate_all("all => all.map((one) => one.className.match(/s(\\d)/)[1])")
    ]
    order = np.argsort([abs(span["odds"]) for span in spans], kind="stable")
    assert np.all(np.diff(np.array(strengths)[order]) >= 0)
    assert max(strengths) == 4
    lines = marks.evaluate_all("all => all.map((one) => getComputedStyle(one).textDecorationStyle)")
    assert lines == [{"for": "solid", "against": "dashed"}[side] for side in sides]
    # Pointing tells the odds.
    marks.nth(0).hover()
    expect(visit.find("#word-told")).to_contain_text(f"“{spans[0]['feature']}”")
    expect(visit.find("#word-told")).to_contain_text(told(spans[0]["odds"]))


def test_bars_are_the_evidence_and_more_can_be_had(visit, service):
    visit.open().classify(TEXT)
    assert shown_evidence(visit) == evidence_of(service.ask("explain", {"text": TEXT, "n": 12}))
    shares = visit.page.locator("#bars .part").evaluate_all(
        "all => all.map((one) => parseFloat(one.style.getPropertyValue('--share')))"
    )
    assert max(shares) == 50
    visit.find("#more-features").click()
    expect(visit.find("#bars tbody tr")).to_have_count(24 + 3)
    assert shown_evidence(visit) == evidence_of(service.ask("explain", {"text": TEXT, "n": 24}))


def test_any_two_classes_are_compared(visit, service):
    visit.open().classify(TEXT)
    labels = [each["label"] for each in service.ask("explain", {"text": TEXT})["classes"]]

    def expected(first, second):
        answer = service.ask("explain", {"text": TEXT, "first": first, "second": second, "n": 12})
        expect(visit.find("#bars .sum td").last).to_have_text(told(answer["total"]))
        assert shown_evidence(visit) == evidence_of(answer)

    visit.find("#second").select_option(labels[2])
    expected(labels[0], labels[2])
    visit.find("#swap").click()
    expected(labels[2], labels[0])
    # The class that stands on the other side changes places.
    visit.find("#first").select_option(labels[0])
    expected(labels[0], labels[2])
    # The choice outlives the text.
    visit.find("#second").select_option(labels[1])
    visit.find("#text").fill("goal hockey " + TEXT)
    expect(visit.find("#verdict")).to_contain_text(labels[1])


@pytest.mark.parametrize(
    "text",
    [
        "orbit <script>alert(1)</script> moon",
        "orbit <img src=x onerror=alert(1)> &amp; <svg onload=alert(1)>",
        "</div></main><iframe src='javascript:alert(1)'></iframe> moon \u202e orbit",
    ],
)
def test_markup_is_text(visit, text):
    visit.open()
    before = visit.page.evaluate("document.querySelectorAll('script, img, iframe, svg, b, i').length")
    visit.classify(text)
    assert visit.page.locator("#words").text_content() == text
    assert visit.page.evaluate("document.querySelectorAll('script, img, iframe, svg, b, i').length") == before
    # The name of a class is markup as well.
    expect(visit.find("#classes")).to_contain_text(COOKING)
    visit.find("#second").select_option(COOKING)
    expect(visit.find("#verdict")).to_contain_text(COOKING)
    visit.find("#tab-features").click()
    visit.find("#search").fill(text)
    expect(visit.find("#ranking")).to_contain_text("No feature")


def test_a_text_of_its_own_words_is_for_their_class(visit):
    visit.open().find("#own-words").click()
    expect(visit.find("#bars table")).to_be_visible()
    words = set(visit.find("#text").input_value().split())
    assert words <= {word for own in [*WORDS.values(), SHARED] for word in own.split()}
    visit.find("#clear").click()
    expect(visit.find("#text")).to_have_value("")
    expect(visit.find("#text")).to_be_focused()


def test_a_long_text_is_shown_in_part(visit):
    text = "orbit moon " * 4000
    visit.open().find("#text").fill(text)
    expect(visit.find("#words button")).to_be_visible()
    assert visit.find("#words mark").count() < 4000
    visit.find("#words button").click()
    expect(visit.find("#words mark")).to_have_count(8000)


def test_a_dropped_file_is_read(visit):
    visit.open()
    visit.carry("moon.txt", "a rocket in orbit, a moon", "#ask")
    expect(visit.find("#text")).to_have_value("a rocket in orbit, a moon")
    expect(visit.find("#answer")).to_contain_text("space")
    visit.carry("moon.bin", "a\0b", "#ask")
    expect(visit.find("#ask-trouble")).to_contain_text("moon.bin is not a text")
    visit.find("#text-file").set_input_files(
        {"name": "latin.txt", "mimeType": "text/plain", "buffer": "für".encode("latin-1")}
    )
    expect(visit.find("#ask-trouble")).to_contain_text("latin.txt is not a text in UTF-8")
    visit.find("#text-file").set_input_files(
        {"name": "goal.txt", "mimeType": "text/plain", "buffer": b"goal hockey"}
    )
    expect(visit.find("#answer")).to_contain_text("sport")


# Rows


def test_a_row_may_have_gaps(visit, service):
    visit.open(model="trees")
    labels = visit.find("#cells label").all_inner_texts()
    columns = list(trees()[0].columns)
    ranked = [each["name"] for each in service.ask("ranking", model="trees")["features"]]
    assert labels == [name for name in ranked if name in columns]
    assert sorted(labels) == sorted(columns)
    visit.find("[name=height]").fill("24,5")
    visit.find("[name=bark]").select_option(label="<i>scaly</i>")
    visit.find("[name=evergreen]").select_option(label="yes")
    row = {"height": 24.5, "bark": "<i>scaly</i>", "evergreen": True, "girth <b>m</b>": None}
    answer = service.ask("explain", {"row": row}, model="trees")
    expect(visit.find("#bars .sum td").last).to_have_text(told(answer["total"]))
    assert shown_evidence(visit) == evidence_of(answer)
    shown = {cells[0]: cells[1] for cells in visit.bars() if len(cells) == 3}
    expected = {"height": "24.5", "bark": "<i>scaly</i>", "girth <b>m</b>": "missing"}
    assert {name: shown[name] for name in expected} == expected
    assert shown["evergreen"] in ("yes", "1")
    share = percent(answer["probability"])
    expect(visit.find("#answer")).to_have_text(f"{answer['label']} {share}")
    frame = pd.DataFrame([row]).astype({"girth <b>m</b>": float})
    model = service.models["trees"]
    assert percent(model.predict_proba(frame[columns])[0].max()) == share
    # A cell that is emptied is missing again.
    visit.find("[name=evergreen]").select_option(label="not known")
    answer = service.ask("explain", {"row": {"height": 24.5, "bark": "<i>scaly</i>"}}, model="trees")
    expect(visit.find("#bars .sum td").last).to_have_text(told(answer["total"]))
    visit.find("[name=height]").fill("tall")
    expect(visit.find("#ask-trouble")).to_contain_text("height: not a number")
    assert visit.find("[name=height]").get_attribute("aria-invalid") == "true"
    visit.find("#clear").click()
    expect(visit.find("#ask-trouble")).to_be_hidden()
    expect(visit.find("[name=height]")).to_have_value("")


def test_an_example_row_is_filled_in_and_ranges_are_shown(visit, service):
    visit.open(model="trees")
    typical = {column["name"]: column["typical"] for column in service.ask("model", model="trees")["columns"]}
    visit.find("#example").click()
    row = {name: each["example"] for name, each in typical.items()}
    row["evergreen"] = row["evergreen"] == "True"
    answer = service.ask("explain", {"row": row}, model="trees")
    expect(visit.find("#bars .sum td").last).to_have_text(told(answer["total"]))
    expect(visit.find("[name=height]")).to_have_value(f"{typical['height']['example']:g}")
    low, high = typical["height"]["range"]
    described = visit.find("[name=height]").get_attribute("aria-describedby")
    expect(visit.find(f"#{described}")).to_have_text(f"{low:g} to {high:g}")


def test_a_long_document_of_a_file_can_be_read(visit, service):
    visit.open(model="topics")
    long = "goal " * 200 + "end"
    visit.find("#tab-file").click()
    column = service.ask("model", model="topics")["text_column"]
    visit.carry("texts.csv", f"{column}\n{long}\norbit\n", "#csv-form")
    cell = visit.find("#csv-preview details")
    expect(cell).to_have_count(1)
    expect(cell.locator("p")).to_be_hidden()
    cell.locator("summary").click()
    expect(cell.locator("p")).to_have_text(long)


@pytest.mark.parametrize("name", ["genes", "counts"])
def test_a_wide_row_shows_what_tells_most(visit, service, name):
    visit.open(model=name)
    names = visit.find("#cells label")
    ranked = [each["name"] for each in service.ask("ranking", model=name)["features"]]
    expect(names).to_have_text(ranked[:36])
    visit.find("#cell-0").fill("6")
    row = {ranked[0]: 6}
    answer = service.ask("explain", {"row": row, "n": 12}, model=name)
    expect(visit.find("#bars .sum td").last).to_have_text(told(answer["total"]))
    # Any other column is found by its name, and what was filled in is not forgotten.
    visit.find("#cell-search").fill(ranked[40])
    visit.page.get_by_label(ranked[40], exact=True).fill("2")
    answer = service.ask("explain", {"row": {**row, ranked[40]: 2}, "n": 12}, model=name)
    expect(visit.find("#bars .sum td").last).to_have_text(told(answer["total"]))
    if name == "genes":
        assert "10 missing cells" in visit.find("#bars").inner_text()
    else:
        visit.find("#tab-file").click()
        expect(visit.find("#csv-hint")).to_contain_text("without names of columns")
        expect(visit.find("#csv")).to_be_hidden()


# Files


def test_a_csv_comes_back_with_predictions(visit, service, tmp_path):
    frame, _ = trees()
    given = frame[:40].assign(note='=1+1, "<b>quoted</b>"\nand a second line')
    given.to_csv(tmp_path / "new trees.csv", index=False)
    visit.open("file", model="trees")
    visit.find("#csv").set_input_files(tmp_path / "new trees.csv")
    expect(visit.find("#csv-said")).to_have_text("40 rows of new trees.csv predicted.")
    with visit.page.expect_download() as download:
        visit.find("#csv-download").click()
    assert download.value.suggested_filename == "new trees-predictions.csv"
    with Path(download.value.path()).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["note"] for row in rows] == given["note"].tolist()
    model = service.models["trees"]
    assert [row["label"] for row in rows] == model.predict(frame[:40]).tolist()
    shares = model.predict_proba(frame[:40]).max(axis=1)
    np.testing.assert_allclose([float(row["probability"]) for row in rows], shares, rtol=1e-5)
    # The same is seen on the page.
    heads = visit.find("#csv-preview thead th").all_inner_texts()
    column = visit.find(f"#csv-preview tbody td:nth-child({heads.index('label') + 1})")
    assert column.all_inner_texts() == [row["label"] for row in rows[:10]]
    counts = dict(re.split(r"\s*\t\s*", row) for row in visit.find("#csv-counts tbody tr").all_inner_texts())
    labels, times = np.unique([row["label"] for row in rows], return_counts=True)
    assert counts == {
        label: f"{n} row{'s' if n > 1 else ''}" for label, n in zip(labels, times.tolist(), strict=True)
    }


def test_a_csv_may_be_dropped_and_its_faults_are_told(visit):
    visit.provoked.add(422)
    visit.open(model="trees")
    visit.carry("bad.csv", "height,bark\n1,rough\n", "#ask")
    expect(visit.find("#tab-file")).to_have_attribute("aria-selected", "true")
    expect(visit.find("#csv-trouble")).to_contain_text("no column")
    expect(visit.find("#csv-result")).to_be_hidden()
    visit.carry("good.csv", "height,girth <b>m</b>,bark,evergreen\n1,,rough,true\n", "#csv-form")
    expect(visit.find("#csv-said")).to_have_text("1 row of good.csv predicted.")
    expect(visit.find("#csv-trouble")).to_be_hidden()


# The model


def test_the_ranking_is_searched_filtered_and_paged(visit, service):
    visit.open("features")
    names = visit.find("#ranking tbody button")
    best = [each["name"] for each in service.ask("ranking", limit=20)["features"]]
    total = service.ask("ranking")["total"]
    expect(names).to_have_text(best)
    expect(visit.find("#ranking-said")).to_have_text(f"1 to 20 of {total}")
    expect(visit.find("#before")).to_be_disabled()
    visit.find("#next").click()
    expect(names).to_have_text([e["name"] for e in service.ask("ranking", offset=20, limit=20)["features"]])
    expect(visit.find("#next")).to_be_disabled()
    visit.find("#search").fill("OR")
    found = [each["name"] for each in service.ask("ranking", search="OR")["features"]]
    assert "orbit" in found
    expect(names).to_have_text(found)
    visit.find("#search").fill("")
    visit.find("#of-class").select_option("space")
    own = service.ask("ranking", limit=20, **{"class": "space"})
    expect(names).to_have_text([each["name"] for each in own["features"]])
    assert own["total"] < total


def test_densities_are_drawn(visit, service):
    visit.open("features")
    picture = visit.find("#density svg.picture")
    expect(picture).to_be_visible()
    visit.find("#search").fill("moon")
    visit.page.get_by_role("button", name="moon", exact=True).click()
    expect(visit.find("#density-title")).to_have_text("“moon” in each class")
    answer = service.ask("density", feature="moon")
    stems = [len(curve["values"]) for curve in answer["curves"]]
    assert picture.locator(".stem").count() == sum(stems)
    assert picture.get_attribute("role") == "img"
    assert picture.locator("title").text_content() == "moon in each class"
    visit.find("#models").select_option("trees")
    visit.page.get_by_role("button", name="height", exact=True).click()
    expect(picture.locator("path.line")).to_have_count(3)
    visit.page.get_by_role("button", name="bark", exact=True).click()
    expect(picture.locator("rect.solid")).to_have_count(9)
    assert COOKING not in visit.find("#density").inner_html()


def test_the_curve_marks_the_number_chosen(visit, service):
    visit.open("model")
    path = service.ask("model")["path"]
    expect(visit.find("#curve path.line")).to_have_count(1)
    expect(visit.find("#curve text.chosen")).to_have_text(f"K = {path['chosen']}")
    at = path["sizes"].index(path["chosen"])
    expect(visit.find("#curve-told")).to_contain_text(
        f"{path['chosen']} features: {percent(path['accuracy'][at])}"
    )
    # A logarithmic axis: equal ratios are equal steps.
    steps = visit.find("#curve path.line").get_attribute("d")
    across = [float(x) for x in re.findall(r"[ML]([\d.]+) ", steps)]
    assert len(across) == len(path["sizes"])
    position = np.interp(
        np.log(path["sizes"]), np.log([path["sizes"][0], path["sizes"][-1]]), [across[0], across[-1]]
    )
    np.testing.assert_allclose(across, position, atol=0.11)
    visit.find("#curve-slider").focus()
    visit.page.keyboard.press("Home")
    expect(visit.find("#curve-told")).to_contain_text(percent(path["accuracy"][0]))
    visit.find("#curve summary").click()
    expect(visit.find("#curve details tbody tr")).to_have_count(len(path["sizes"]))


def test_the_model_is_told(visit, service):
    visit.open("model", model="trees")
    expect(visit.find("#shares tbody tr")).to_have_count(3)
    for column, words in zip(
        service.ask("model", model="trees")["columns"],
        visit.find("#columns tbody tr").all_inner_texts(),
        strict=True,
    ):
        assert words.startswith(f"{column['name']}\t{column['kind']}\t{column['family']}")
    expect(visit.find("#settings")).to_contain_text("smoothing")
    # Another model is another page, down to its title.
    visit.find("#models").select_option("topics")
    expect(visit.page).to_have_title("topics · maxdisc")
    expect(visit.find("#columns-card")).to_be_hidden()


# What goes wrong


def test_without_the_token_it_asks_for_one(visits, guarded):
    visit = visits(guarded)
    visit.provoked.add(401)
    visit.page.goto(guarded.address)
    expect(visit.find("#token")).to_be_focused()
    expect(visit.find("#tabs")).to_be_hidden()
    visit.find("#token").fill("wrong")
    visit.page.keyboard.press("Enter")
    expect(visit.find("#token-trouble")).to_contain_text("does not take this token")
    visit.find("#token").fill(TOKEN)
    visit.page.keyboard.press("Enter")
    expect(visit.find("#tabs")).to_be_visible()
    visit.classify("rocket moon")
    # It is kept for this tab, and nowhere else.
    visit.page.reload()
    expect(visit.find("#tabs")).to_be_visible()
    assert visit.page.evaluate("localStorage.length + document.cookie.length") == 0
    # What is too large is told with what would fit.
    visit.find("#text").fill("orbit " * 1000)
    expect(visit.find("#ask-trouble")).to_contain_text("takes 2,048 at most")
    expect(visit.find("#why")).to_be_hidden()
    visit.find("#tab-file").click()
    visit.find("#csv").set_input_files(
        {"name": "large.csv", "mimeType": "text/csv", "buffer": b"text\n" + b"orbit\n" * 1000}
    )
    expect(visit.find("#csv-trouble")).to_contain_text("large.csv is too large")


def test_the_services_own_refusal_is_shown(visits, guarded):
    """A service that was started anew may take less than the page was told."""
    visit = visits(guarded)
    visit.provoked.update({401, 413})
    visit.page.add_init_script(f"sessionStorage.setItem('maxdisc-token', '{TOKEN}')")

    def larger(route: Any) -> None:
        told = route.fetch()
        route.fulfill(response=told, json={**told.json(), "limits": None})

    visit.page.route("**/model?*", larger)
    visit.open().find("#text").fill("orbit " * 600)
    expect(visit.find("#ask-trouble")).to_contain_text("2,048")
    expect(visit.find("#ask-trouble")).not_to_contain_text("Is it still running")


def test_a_service_that_is_gone_is_told(visit):
    visit.open().classify("rocket")
    visit.page.context.set_offline(True)
    visit.find("#text").fill("rocket moon")
    expect(visit.find("#ask-trouble")).to_contain_text("does not answer")
    visit.complaints[:] = [one for one in visit.complaints if "ERR_INTERNET_DISCONNECTED" not in one]
    visit.page.context.set_offline(False)
    visit.find("#go").click()
    expect(visit.find("#bars table")).to_be_visible()
    expect(visit.find("#ask-trouble")).to_be_hidden()


# For everyone


def test_the_keyboard_alone_suffices(visit):
    visit.open()
    press, focused = visit.page.keyboard.press, visit.find(":focus")
    press("Tab")
    expect(focused).to_have_text("Skip to the content")
    press("Tab")
    expect(focused).to_have_attribute("id", "models")
    press("Tab")
    expect(focused).to_have_attribute("id", "tab-classify")
    for name in ("file", "features", "model", "classify"):
        press("ArrowRight")
        expect(focused).to_have_attribute("id", f"tab-{name}")
        expect(visit.find(f"#{name}")).to_be_visible()
        assert visit.find("[role=tab][tabindex='0'], [role=tab]:not([tabindex])").count() == 1
    press("End")
    expect(focused).to_have_attribute("id", "tab-model")
    press("Home")
    press("Tab")
    expect(focused).to_have_attribute("id", "classify")
    press("Tab")
    expect(focused).to_have_attribute("id", "clear")
    press("Tab")
    expect(focused).to_have_attribute("id", "text")
    visit.page.keyboard.type("rocket orbit goal")
    press("Control+Enter")
    expect(visit.find("#words mark")).to_have_count(3)
    for _ in range(20):
        press("Tab")
        if focused.evaluate("one => one.tagName") == "MARK":
            break
    expect(focused).to_have_text("rocket")
    expect(visit.find("#word-told")).to_contain_text("“rocket”")
    press("ArrowRight")
    press("ArrowRight")
    expect(focused).to_have_text("goal")
    expect(visit.find("#word-told")).to_contain_text("“goal”")
    # One stop of Tab for all words: the next one is outside.
    assert visit.find("#words mark[tabindex='0']").count() == 1
    outline = focused.evaluate("one => getComputedStyle(one).outlineStyle")
    assert outline == "solid"


NAMES = law("page_names.js")

CONTRAST = law("page_contrast.js")


def fill(visit: Visit, view: str, model: str) -> None:
    """Give a view something to show."""
    visit.find(f"#tab-{view}").click()
    if view == "classify" and model == "topics":
        visit.classify(TEXT)
    elif view == "classify":
        visit.find("[name=height]").fill("24")
        expect(visit.find("#bars table")).to_be_visible()
    elif view == "features":
        expect(visit.find("#density svg.picture title")).to_have_count(1)
    elif view == "model":
        expect(visit.find("#curve svg.picture title")).to_have_count(1)
    elif view == "file":
        heads = "text" if model == "topics" else ",".join(trees()[0].columns)
        cells = "orbit" if model == "topics" else "20,2.5,rough,true"
        content = f"{heads}\n{cells}\n".encode()
        visit.find("#csv").set_input_files({"name": "a.csv", "mimeType": "text/csv", "buffer": content})
        expect(visit.find("#csv-preview table")).to_be_visible()


@pytest.mark.parametrize("model", ["topics", "trees"])
def test_every_view_is_for_everyone(visit, model):
    """Everything has a name; letters stand out, light or dark; a phone need not scroll sideways."""
    visit.open(model=model)
    for view in VIEWS:
        fill(visit, view, model)
        assert visit.page.evaluate(NAMES) == [], view
        for scheme, paper in (("light", "rgb(244, 245, 247)"), ("dark", "rgb(17, 20, 24)")):
            visit.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
            looked, faults = visit.page.evaluate(CONTRAST)
            assert faults == [], (view, scheme)
            assert looked > 15, view
        visit.page.set_viewport_size({"width": 360, "height": 740})
        # Pictures are drawn again before the next frame is.
        visit.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        root = "document.documentElement"
        assert visit.page.evaluate(f"[{root}.scrollWidth, {root}.clientWidth]") == [360, 360], view
        visit.page.set_viewport_size({"width": 1200, "height": 900})


def test_a_text_stays_when_another_model_is_looked_at(visit):
    visit.open(model="topics").classify(TEXT)
    said = visit.find("#answer").inner_text()
    visit.find("#models").select_option("trees")
    expect(visit.find("#row-part")).to_be_visible()
    visit.find("#models").select_option("topics")
    expect(visit.find("#text")).to_have_value(TEXT)
    expect(visit.find("#answer")).to_have_text(said)


def test_motion_can_be_refused(visit):
    visit.open().classify("rocket moon")
    part = visit.find("#bars .part").first
    for setting, seconds in (("reduce", "0s"), ("no-preference", "0.18s")):
        visit.page.emulate_media(reduced_motion=setting)
        assert part.evaluate("one => getComputedStyle(one).transitionDuration") == seconds


# Its files


def test_files_are_whole_and_keep_to_themselves():
    source = {path.name: path.read_text(encoding="utf-8") for path in STATIC.iterdir() if path.is_file()}
    pages = {"index.html", "docs.html"}
    wanted = {name for page in pages for name in re.findall(r'(?:src|href)="static/([^"/]+)"', source[page])}
    for name, text in source.items():
        if name.endswith(".js"):
            wanted |= set(re.findall(r'from "\./([^"]+)"', text))
    assert wanted == source.keys() - pages
    for name, text in source.items():
        bare = text.replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//[a-z]+\.", bare), f"{name} reaches out"
        risky = (
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\bon\w+=|style="
        )
        assert not re.search(risky, text), f"{name}: data might become markup"
