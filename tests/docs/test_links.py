"""Links lead somewhere: those of the pages on the way into the project, and the checker of the built ones."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *sorted(
    str(page.relative_to(ROOT))
    for page in (ROOT / "docs").rglob("*.md")
    if not {"_build", "gallery"} & set(page.relative_to(ROOT / "docs").parts)
)]  # fmt: skip


def prose(path):
    """A page without its code, in which brackets are no links."""
    text = re.sub(r"^(```+|:::+).*?^\1$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "``", text)


def anchors(path):
    """The anchors that headings have, as Sphinx and code hosts make them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page):
    path = ROOT / page
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme in ("http", "https", "mailto"), link
            assert parts.scheme == "mailto" or "." in parts.netloc, link
            continue
        target = (path.parent / parts.path).resolve() if parts.path else path
        if (ROOT / "docs" / "gallery") in target.parents:
            # Made from the examples when the pages are.
            assert target.name == "index" or (ROOT / "examples" / f"{target.name}.py").exists(), link
            continue
        assert target.exists(), link
        if parts.fragment:
            assert parts.fragment in anchors(target), link


@pytest.fixture
def checker():
    spec = importlib.util.spec_from_file_location("check_links", ROOT / "docs" / "check_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def put(folder, **pages):
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")


def test_sound_pages_have_no_faults(tmp_path, checker):
    (tmp_path / "a picture.png").write_bytes(b"")
    links = '<a href="b.html#there">x</a><a href="#here" id="here">x</a><a href="https://example.org/x">x</a>'
    put(tmp_path, a=links + '<img src="a%20picture.png" srcset="a%20picture.png, a%20picture.png 2x">')
    put(tmp_path, b='<h1 id="there">x</h1><a href="mailto:a@b.org">x</a><img src="data:image/png;base64,AA">')
    assert checker.faults(tmp_path) == []


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="gone.html">x</a>', "leads nowhere"),
        ('<a href="#gone">x</a>', "no such anchor"),
        ('<a href="../outside.html">x</a>', "leaves the pages"),
        ('<img src="gone.png">', "leads nowhere"),
        ('<img src="a.html" srcset="gone.png 2x">', "leads nowhere"),
        ('<script src="https://cdn.example.org/x.js"></script>', "fetched from elsewhere"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "fetched from elsewhere"),
        ('<a href="http://nowhere/">x</a>', "is no address"),
        ('<a href="javascript:alert(1)">x</a>', "is no address"),
    ],
)
def test_each_fault_is_told_with_its_page(body, fault, tmp_path, checker):
    put(tmp_path, a=body)
    (found,) = checker.faults(tmp_path)
    assert found.startswith("a.html: ")
    assert found.endswith(fault)


def test_a_fault_ends_the_build(tmp_path):
    put(tmp_path, a='<a href="gone.html">x</a>')
    command = [sys.executable, str(ROOT / "docs" / "check_links.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "a.html: 'gone.html' leads nowhere\n"
