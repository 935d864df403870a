"""``doctor``: what it finds, and that a machine whose compiled code is broken fails it."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from maxdisc.cli import doctor
from maxdisc.numerics import compiling

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def working(monkeypatch):
    found = {"works": True, "reason": None, "kernels": 3, "seconds": 4.5}
    monkeypatch.setattr(doctor, "check_compiled_code", lambda: found)


@pytest.mark.usefixtures("working")
def test_it_shows_what_is_there(run):
    facts = run("doctor", "--json").json
    assert facts["packages"]["numpy"] == version("numpy")
    assert facts["maxdisc"] == version("maxdisc")
    assert {"cli"} <= set(facts["extras"])
    assert set(facts["extras"]) | set(facts["missing"]) == set(doctor.EXTRAS)
    assert Path(facts["code"], "cli", "doctor.py").is_file()
    assert Path(facts["cache"]["folder"]) == compiling.cache_folder()
    shown = run("doctor")
    assert shown.code == 0
    assert "3 functions compiled now, in 4.5 s" in shown.out
    assert shown.out.count("\n") < 15


@pytest.mark.usefixtures("working")
def test_a_missing_extra_has_its_line(run, monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "fastapi" else "1.0")
    facts = run("doctor", "--json").json
    assert facts["missing"] == {"serve": ["fastapi"]}
    assert "[serve]" in facts["install"]
    assert "serve (lacks fastapi)" in run("doctor").out


def test_the_extras_are_those_of_users():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert extras["all"] == [f"maxdisc[{','.join(sorted(doctor.EXTRAS))}]"]


def test_code_that_is_not_compiled_fails(run, monkeypatch):
    monkeypatch.setattr(compiling.config, "DISABLE_JIT", 1)
    done = run("doctor")
    assert done.code == 1
    assert "does not work: NUMBA_DISABLE_JIT is set" in done.out


@pytest.mark.whole
def test_compiled_code_works_here():
    checked = doctor.check_compiled_code()
    assert checked["works"], checked["reason"]


@pytest.mark.whole
def test_wrong_probabilities_fail(monkeypatch):
    monkeypatch.setattr(doctor, "_CLOSE", -1.0)
    assert "differ by" in doctor.check_compiled_code()["reason"]
