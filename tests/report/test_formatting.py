"""Markup, Markdown and numbers of a report."""

from __future__ import annotations

from maxdisc.inspection.markup import element
from maxdisc.inspection.printed_numbers import percent
from maxdisc.report.markdown import plain
from maxdisc.report.settings import of_families, told


def test_text_is_escaped():
    assert str(element("p", "1 < 2 ", element("b", "sure"), class_="note")) == (
        '<p class="note">1 &lt; 2 <b>sure</b></p>'
    )
    assert plain("a | b <i>") == r"a \| b \<i\>"


def test_parameters_are_the_same_text_in_every_run():
    assert of_families({"gaussian": 4}) == "gaussian"
    assert of_families({"gaussian": 3, "categorical": 2}) == "3 gaussian, 2 categorical"
    assert [told(max), told("auto"), told(list(range(1000)))] == ["max", "'auto'", "a list of 1,000"]


def test_per_cent_are_never_rounded_to_all():
    assert [percent(0.8512), percent(0.99951), percent(1.0)] == ["85.1 %", "99.95 %", "100 %"]
    # The fewest digits that do not round to 100 %.
    assert [percent(0.999953), percent(0.9999953), percent(0.9999999)] == [
        "99.995 %", "99.9995 %", "over 99.99 %",
    ]  # fmt: skip
