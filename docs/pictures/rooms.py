"""Draw the rooms of the package and what they import from each other, read off the import statements.

``make docs`` runs it; the picture is docs/pictures/rooms.svg.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.test_rooms import FILES, ROOMS, SOURCE, imports, room_of  # noqa: E402

CELL, LEFT, TOP, WIDTH = 17, 108, 96, 1000
STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2933; }
  .about { fill: #52606d; } .self { fill: #9aa5b1; } .import { fill: #2368a2; }
  .line { stroke: #9aa5b1; stroke-opacity: 0.35; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e7eb; } .about { fill: #b8c1cc; } .import { fill: #63a4da; }
  }
"""


def edges() -> Counter[tuple[str, str]]:
    """How many modules of a room import something from another."""
    return Counter(
        (room, other)
        for path in FILES
        for room in [room_of(path)]
        for other in imports(path)[1]
        if other != room
    )


def about(room: str) -> str:
    """The first sentence of a room's docstring."""
    path = SOURCE / room
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    doc = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return doc.partition("\n")[0].rstrip(".")


def drawing() -> str:
    rooms = [room for room in ROOMS if room != "__main__"]
    counts, size = edges(), Counter(map(room_of, FILES))
    parts = []
    for row, room in enumerate(rooms):
        y = TOP + row * CELL
        x = LEFT + row * CELL
        parts.append(f'<line class="line" x1="4" x2="{WIDTH - 4}" y1="{y + CELL}" y2="{y + CELL}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{room}</text>')
        parts.append(
            f'<text transform="translate({x + 13} {TOP - 8}) rotate(-60)" text-anchor="start">{room}</text>'
        )
        parts.append(f'<rect class="self" x="{x + 2}" y="{y + 2}" width="{CELL - 3}" height="{CELL - 3}"/>')
        for column, other in enumerate(rooms):
            number = counts[room, other]
            if number:
                share = round(min(1.0, 0.25 + 0.75 * number / size[room]), 2)
                parts.append(
                    f'<rect class="import" x="{LEFT + column * CELL + 2}" y="{y + 2}" width="{CELL - 3}" '
                    f'height="{CELL - 3}" fill-opacity="{share}">'
                    f"<title>{room} imports from {other}: {number} of {size[room]} modules</title></rect>"
                )
        words = escape(about(room).replace("``", ""))
        end = LEFT + len(rooms) * CELL + 12
        parts.append(f'<text class="about" x="{end}" y="{y + 13}">{words}</text>')
    height = TOP + len(rooms) * CELL + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
        f"<title>Rooms of maxdisc, and what each imports</title>\n<style>{STYLE}</style>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(drawing(), encoding="utf-8")
