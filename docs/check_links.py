"""Every link of the built pages leads somewhere, and nothing is fetched from elsewhere.

    python docs/check_links.py docs/_build/html

Files and anchors must exist; addresses of other sites are only looked at, never visited. Pictures, scripts
and styles must be among the pages, which can so be read without a network. Exit code 1 and a line for each
fault.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Elements whose address the browser fetches by itself.
FETCHED = {("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """The anchors of a page, and its links with the element that they are of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        for name in ("href", "src"):
            if name in found:
                self.links.append((tag, name, found[name]))
        for part in found.get("srcset", "").split(","):
            if part.strip():
                self.links.append((tag, "src", part.split()[0]))


def faults(site: Path) -> list[str]:
    """What is wrong with the links of all pages below a folder, a line each."""
    site = site.resolve()
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    found = []
    for file, page in pages.items():
        for tag, name, link in page.links:
            fault = _fault(site, file, pages, link, (tag, name) in FETCHED)
            if fault:
                found.append(f"{file.relative_to(site)}: {link!r} {fault}")
    return sorted(set(found))


def _fault(site: Path, file: Path, pages: dict[Path, Page], link: str, fetched: bool) -> str | None:
    try:
        parts = urlsplit(link)
    except ValueError:
        return "is no address"
    if parts.scheme == "data":
        return None
    if parts.scheme or parts.netloc:
        if fetched:
            return "would be fetched from elsewhere"
        sound = parts.scheme == "mailto" or (parts.scheme in ("http", "https") and "." in parts.netloc)
        return None if sound and not set(link) & set(" <>\"'") else "is no address"
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(site):
        return "leaves the pages"
    if not target.is_file():
        return "leads nowhere"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return "has no such anchor"
    return None


def main(folder: str) -> int:
    found = faults(Path(folder))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
