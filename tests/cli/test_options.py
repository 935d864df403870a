"""Options and numbers of the command line."""

from __future__ import annotations

from maxdisc.cli.console import readable, size_of
from maxdisc.cli.fit.column_options import ColumnOptions


def test_control_characters_are_replaced():
    assert readable("a  bright \x1b[31m red") == "a  bright \ufffd[31m red"


def test_sizes_have_units():
    assert (size_of(900), size_of(1_300_000)) == ("900 B", "1.3 MB")


def test_families_are_read_off_the_options():
    asked = ColumnOptions.of(["gamma", "age=poisson", "zip=categorical"], ["site"])
    assert asked == ColumnOptions("gamma", (("age", "poisson"),), ("site", "zip"), "ignore")
