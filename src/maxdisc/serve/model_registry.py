"""The models that are served, by name; each is replaced when its file is, and only by one that is whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maxdisc.files import nearest
from maxdisc.serve.logs import Log
from maxdisc.serve.metrics import Metrics
from maxdisc.serve.refusals import RefusedError, busy
from maxdisc.serve.served_model import ServedModel

#: Identity of a file's content: inode, size and time.
Mark = tuple[int, int, int]


@dataclass
class _Place:
    path: Path
    model: ServedModel | None = None
    #: The file as it was when it was last loaded, or when that failed.
    mark: Mark | None = None
    #: As it was when it was last looked at.
    seen: Mark | None = None


class Shelf:
    """Models by name; the first is the default."""

    def __init__(self, paths: Mapping[str, Path], log: Log, metrics: Metrics) -> None:
        self._places = {name: _Place(path) for name, path in paths.items()}
        self._log, self._metrics = log, metrics

    @property
    def names(self) -> list[str]:
        """The names, in the order in which they were given."""
        return list(self._places)

    @property
    def loaded(self) -> bool:
        """Whether all models are there."""
        return all(place.model is not None for place in self._places.values())

    @property
    def models(self) -> list[ServedModel]:
        """The models, in the order in which they were given."""
        return [place.model for place in self._places.values() if place.model is not None]

    def model(self, name: str | None) -> ServedModel:
        """Return the model of a name; it stays valid if its file changes."""
        place = self._places.get(self.names[0] if name is None else name)
        if place is None:
            asked = str(name)[:60]
            raise RefusedError(404, f"there is no model {asked!r}{nearest(asked, self.names)}")
        if place.model is None:
            raise busy("the models are being loaded: ask again in a moment.")
        return place.model

    def load(self, name: str) -> ServedModel:
        """Load a model for the first time; raise ``ValueError`` if it cannot be."""
        place = self._places[name]
        place.mark = place.seen = _mark(place.path)
        return ServedModel.read(name, place.path)

    def put(self, model: ServedModel) -> None:
        """Let requests have this model from now on."""
        self._places[model.name].model = model
        known = [{"model": m.name, "kind": m.kind, "checksum": m.file["checksum"]} for m in self.models]
        self._metrics.set_models(known)
        self._log.say("loaded", model=model.name, kind=model.kind, **model.file)

    def changed(self) -> list[str]:
        """Return the models whose file is another than the one loaded, and is no longer being written."""
        out = []
        for name, place in self._places.items():
            mark = _mark(place.path)
            settled, place.seen = mark == place.seen, mark
            if mark != place.mark and settled:
                out.append(name)
        return out

    def reload(self, name: str) -> ServedModel | None:
        """Load a changed file while the old model is in use; log and return None if it is invalid."""
        place = self._places[name]
        mark = _mark(place.path)
        place.mark = mark
        try:
            return ServedModel.read(name, place.path)
        except Exception as error:  # for any error the old model stays, and later reloads are tried
            self._log.say("reload failed", model=name, error=str(error), serving=self._still(place))
            return None

    def _still(self, place: _Place) -> Any:
        return None if place.model is None else place.model.file["checksum"]


def _mark(path: Path) -> Mark | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
