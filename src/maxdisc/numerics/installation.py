"""How maxdisc was installed, and the line that installs an extra of it."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

# What has a further condition, such as a system, does without.
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w.-]+)["']""")
_OWN = re.compile(r"maxdisc\[([\w,. -]+)\]")


@dataclass(frozen=True)
class Installation:
    """Where maxdisc was installed from, and by which program."""

    kind: str
    place: str
    metadata: Distribution | None = None

    @classmethod
    def found(cls, metadata: Distribution | None = None) -> Installation:
        """Read the metadata of this installation; PEP 610 says what ``direct_url.json`` holds."""
        try:
            metadata = metadata or distribution("maxdisc")
        except PackageNotFoundError:
            return cls("clone", str(Path(__file__).resolve().parents[3]))
        told = json.loads(metadata.read_text("direct_url.json") or "{}")
        url = told.get("url", "")
        if not url:
            return cls("index", "", metadata)
        if "vcs_info" in told:
            commit = told["vcs_info"].get("requested_revision") or told["vcs_info"].get("commit_id", "")
            folder = f"#subdirectory={told['subdirectory']}" if "subdirectory" in told else ""
            address = f"{told['vcs_info'].get('vcs', 'git')}+{url}{'@' * bool(commit)}{commit}{folder}"
            return cls("repository", address, metadata)
        if "dir_info" in told:
            # Late: only messages want this, and it takes longer to import than all the rest.
            from urllib.parse import urlsplit
            from urllib.request import url2pathname

            parts = urlsplit(url)
            share = f"//{parts.netloc}" if parts.netloc not in ("", "localhost") else ""
            kind = "editable" if told["dir_info"].get("editable") else "clone"
            return cls(kind, url2pathname(share + parts.path), metadata)
        return cls("archive", url, metadata)

    @property
    def description(self) -> str:
        """How it was installed, in words."""
        return {
            "index": "from a package index",
            "repository": f"from the repository {self.place}",
            "archive": f"from the file {self.place}",
            "editable": f"from the clone {self.place}, editable",
            "clone": f"from the clone {self.place}",
        }[self.kind]

    def pip_line(self, *extras: str) -> str:
        """Return the line that installs extras of the same maxdisc into the same environment."""
        by_uv = self.metadata is not None and (self.metadata.read_text("INSTALLER") or "").strip() == "uv"
        pip = "uv pip install" if by_uv else "python -m pip install"
        asked = f"[{','.join(extras)}]"
        if self.kind in ("editable", "clone") and not Path(self.place, "pyproject.toml").is_file():
            # The clone was moved or removed since: the packages themselves are always right.
            return " ".join([pip, *map(_quoted, sorted(set(self.packages(*extras))))])
        if self.kind in ("editable", "clone"):
            return f"{pip} {'-e ' * (self.kind == 'editable')}{_quoted(self.place + asked)}"
        at = f" @ {self.place}" if self.place else ""
        return f"{pip} {_quoted(f'maxdisc{asked}{at}')}"

    def packages(self, *extras: str) -> Iterator[str]:
        """Yield the packages that extras need, each with its versions."""
        for line in (self.metadata.requires if self.metadata is not None else None) or ():
            package, _, marker = (part.strip() for part in line.partition(";"))
            found = _EXTRA.fullmatch(marker)
            if found is None or found[1] not in extras:
                continue
            own = _OWN.fullmatch(package)
            if own is None:
                yield package
            else:
                yield from self.packages(*(name.strip() for name in own[1].split(",")))


def pip_line(*extras: str) -> str:
    """Return the line that installs extras, which fits how maxdisc was installed."""
    return Installation.found().pip_line(*extras)


def _quoted(argument: str) -> str:
    """Return an argument as the shell of this system takes it."""
    return shlex.quote(argument) if os.name != "nt" else f'"{argument}"'
