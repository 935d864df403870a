"""The tutorial, run from its first line to its last: what is shown is what is printed.

After a change that is meant, ``python tests/docs/test_tutorial.py`` writes into the page what is printed now.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(python|text|console)\n(.*?)^```", re.M | re.S)
NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def blocks():
    """Language and text of each block, in order."""
    return re.findall(BLOCK, PAGE.read_text(encoding="utf-8"))


def assert_told(printed, shown):
    """The same words, and about the same numbers: versions and machines differ in some digits."""
    lines, told = (
        [re.sub(r", in [\d.]+ s$", "", line.rstrip()) for line in text.strip().splitlines()]
        for text in (printed, shown)
    )
    assert len(lines) == len(told), printed
    for line, expected in zip(lines, told, strict=True):
        words = [re.sub(r"\s+", " ", NUMBER.sub("#", text)) for text in (line, expected)]
        assert words[0] == words[1], printed
        for number, figure in zip(NUMBER.findall(line), NUMBER.findall(expected), strict=True):
            assert_close(float(number.replace(",", "")), float(figure.replace(",", "")), line)


def assert_close(a, b, line):
    if min(abs(a), abs(b)) and (abs(a) < 1e-4 or abs(b) < 1e-4):
        a, b = math.log10(abs(a)), math.log10(abs(b))
    assert a == pytest.approx(b, rel=0.15, abs=0.06), line


def run_shell(line):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run(
        ["sh", "-ec", line], env=environment, check=True, text=True, encoding="utf-8", stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


def printed_by_blocks():
    """What each console and text block shows, and what was printed in its place."""
    names, printed = {}, ""
    for language, text in blocks():
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(text, names)  # the reader would paste it too
            printed = out.getvalue()
        elif language == "text":
            yield text, printed
        else:
            for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
                command, _, shown = part.partition("\n")
                yield shown, run_shell(command)


def test_the_tutorial_says_what_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = 0
    for shown, printed in printed_by_blocks():
        assert_told(printed, shown)
        told += bool(shown.strip())
    assert told >= 8
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_numbers_that_differ_are_noticed():
    assert_told("accuracy 94.1% on 169 rows, in 3.2 s", "accuracy 94.6% on 169 rows, in 9.9 s")
    for other in ("accuracy 60.1% on 169 rows", "precision 94.1% on 169 rows", "accuracy 94.1%"):
        with pytest.raises(AssertionError):
            assert_told("accuracy 94.1% on 169 rows", other)
    with pytest.raises(AssertionError):
        assert_told("p 1.0e-40", "p 1.0e-20")


def rewrite():
    """Put what is printed now in the place of what is shown."""
    printed = iter([now for _, now in printed_by_blocks()])

    def block(match):
        language, text = match.groups()
        if language == "python":
            return match[0]
        if language == "text":
            return f"```text\n{next(printed).rstrip()}\n```"
        commands = [part.partition("\n")[0] for part in re.split(r"^\$ ", text, flags=re.M)[1:]]
        outputs = ["\n".join(map(str.rstrip, next(printed).splitlines())) for _ in commands]
        shown = [f"$ {command}\n{output}".rstrip() for command, output in zip(commands, outputs, strict=True)]
        return "```console\n" + "\n".join(shown) + "\n```"

    text = re.sub(BLOCK, block, PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        rewrite()
