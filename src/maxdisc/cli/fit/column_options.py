"""``--family``, ``--categorical`` and ``--missing``: options for single columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maxdisc.cli.failures import BadInputError
from maxdisc.cli.options import Family, Missing

if TYPE_CHECKING:
    from maxdisc.files import Roles


@dataclass(frozen=True)
class ColumnOptions:
    """Options about columns: families, categorical columns and missing values."""

    family: str
    single: tuple[tuple[str, str], ...]
    categorical: tuple[str, ...]
    missing: str

    @classmethod
    def of(
        cls, family: Sequence[str] = (), categorical: Sequence[str] = (), missing: Missing = Missing.ignore
    ) -> ColumnOptions:
        """Read the options; raise ``BadInputError`` for a family that there is not."""
        every = [_known(written) for written in family if "=" not in written]
        if len(every) > 1:
            raise BadInputError(
                f"--family names two families for all columns, {every[0]} and {every[1]}: for single columns "
                "say --family COLUMN=NAME."
            )
        pairs = [written.rpartition("=")[::2] for written in family if "=" in written]
        single = [(columns, _known(name)) for columns, name in pairs]
        words = [columns for columns, name in single if name == "categorical"]
        numbers = [(columns, name) for columns, name in single if name != "categorical"]
        everywhere = every[0] if every else Family.auto.value
        return cls(everywhere, tuple(numbers), (*categorical, *words), missing.value)

    @property
    def flags(self) -> list[str]:
        """The options that were given and look at single columns of a table."""
        given = {
            "--family COLUMN=NAME": self.single,
            "--family categorical": self.family == "categorical",
            "--categorical": self.categorical,
            "--missing informative": self.missing != "ignore",
        }
        return [flag for flag, value in given.items() if value]

    def require_none(self, how: str, why: str, but: str = "") -> None:
        """Raise ``BadInputError`` if any of them was given, but for one that is welcome."""
        given = [flag for flag in self.flags if flag != but]
        if given:
            raise BadInputError(f"{how} {why}: leave out {given[0]}, or {how}.")

    def families(self, roles: Roles, source: str) -> str | dict[str, str]:
        """Return the parameter ``family``: by column where single ones are named, or some are categories."""
        from maxdisc.files import matching

        if not roles.features:
            if self.flags:
                what = "documents" if roles.text else "rows without names of columns"
                raise BadInputError(
                    f"{self.flags[0]} is for tables, and {source} holds {what}: leave it out."
                )
            return self.family
        everywhere = self.family == Family.auto or not roles.categories
        if not self.single and everywhere:
            return self.family
        asked = {
            column: name
            for columns, name in self.single
            for column in matching([columns], roles.features, source)
        }
        if self.family == Family.auto:
            return asked
        return {
            c: asked.get(c, self.family) for c in roles.features if c in asked or c not in roles.categories
        }


def require_numbers(roles: Roles, how: str) -> None:
    """Raise ``BadInputError`` for columns of categories where rows are counted without being held."""
    if not roles.categories:
        return
    several = len(roles.categories) > 1
    names = ", ".join(map(repr, roles.categories[:3])) + (
        f" and {len(roles.categories) - 3} more" if len(roles.categories) > 3 else ""
    )
    raise BadInputError(
        f"column{'s' if several else ''} {names} hold{'' if several else 's'} categories, which are not "
        f"counted with {how}: leave {'them' if several else 'it'} out with --exclude "
        f"'{','.join(roles.categories)}', or fit without {how}."
    )


def _known(name: str) -> str:
    if name not in set(Family):
        raise BadInputError(f"--family takes {', '.join(Family)}, or COLUMN=NAME, got {name[:40]!r}.")
    return name
