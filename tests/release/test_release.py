"""A release is of one piece: one version, the files that belong to it, and constraints that are current."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import maxdisc

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONSTRAINTS = (ROOT / "constraints" / "serve.txt").read_text(encoding="utf-8")
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def pinned(text):
    """From the names in a file of constraints to their versions; a name may have one for each Python."""
    found: dict[str, list[str]] = {}
    for name, number in re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", text, re.MULTILINE):
        found.setdefault(canonicalize_name(name), []).append(number)
    return found


def needed(extra):
    """The requirements of the package with an extra, those of the extras that it names included."""
    asked = [Requirement(text) for text in PROJECT["optional-dependencies"][extra]]
    further = {name for one in asked if one.name == "maxdisc" for name in one.extras}
    own = [Requirement(text) for text in PROJECT["dependencies"]]
    return own + [r for r in asked if r.name != "maxdisc"] + [r for name in further for r in needed(name)]


def test_there_is_one_version():
    assert maxdisc.__version__ == version("maxdisc")
    assert re.search(r"^version: (.+)$", CITATION, re.MULTILINE).group(1) == PROJECT["version"]
    # What is installed where tests run was installed from this file, unless it was changed since.
    assert version("maxdisc") == PROJECT["version"], "install again: pip install --editable ."


def test_no_module_has_a_version_of_its_own():
    number = re.escape(PROJECT["version"])
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert not [text for text in sources if re.search(rf"""["']{number}["']""", text)]


def test_the_citation_has_what_its_format_demands():
    for name in ("cff-version: 1.2.0", "message:", "title:", "authors:", "type: software"):
        assert re.search(rf"^{re.escape(name)}", CITATION, re.MULTILINE), name
    assert f"license: {PROJECT['license']}" in CITATION
    families = re.findall(r"^ +- family-names: (.+)$", CITATION, re.MULTILINE)
    assert families == ["Dukkipati", "Pandey", "Ghoshdastidar", "Koley", "Sriram"]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").replace("*", "").split())
    assert re.search(r'^ +title: "(.+)"$', CITATION, re.MULTILINE).group(1) in readme


def test_constraints_of_the_service_are_those_of_the_project():
    found = pinned(CONSTRAINTS)
    for requirement in needed("serve"):
        versions = found.get(canonicalize_name(requirement.name))
        assert versions, f"constraints/serve.txt lacks {requirement.name}: make constraints"
        for number in versions:
            assert requirement.specifier.contains(number), f"{requirement} is not {number}: make constraints"


def test_every_constraint_has_a_hash_and_no_address():
    blocks = re.split(r"^(?=[A-Za-z0-9])", CONSTRAINTS, flags=re.MULTILINE)[1:]
    assert len(blocks) > 10
    for block in blocks:
        assert "==" in block
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block
    assert "://" not in CONSTRAINTS
    assert "index-url" not in CONSTRAINTS


def test_a_constraint_that_is_missing_would_be_seen():
    assert pinned("a-b==1.0 \\\n    --hash=sha256:0\nC.d==2 ; python_version < '3.12'\n") == {
        "a-b": ["1.0"],
        "c-d": ["2"],
    }
    assert {r.name for r in needed("serve")} >= {"numpy", "typer", "fastapi", "uvicorn"}


def test_the_security_policy_says_how_to_report_and_what_counts():
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for word in ("privately", "Which versions", "ModelFileError", "maxdisc serve", "constraints/serve.txt"):
        assert word in policy, word
    assert "@" not in policy  # no address that nobody reads
