"""Packages that add commands to tieredctl, found by the entry point `tieredctl.commands`.

A package's value is loaded with nothing that its commands need: it says what there is, and each module is imported when
its commands are typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from tieredctl.plugins import PluginKind

if TYPE_CHECKING:
    from tieredctl.model.finding_kind import FindingKind

_PACKAGES = PluginKind("package of commands", "tieredctl.commands")


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands under one noun."""

    noun: str
    """The first word that is typed."""
    module: str
    """Its function `add_to(commands)` adds them to the noun's Typer application."""
    meaning: str | None = None
    """What the help says of a noun of the package's own; None where the noun is another's."""
    verbs: tuple[str, ...] = ()
    """Under another's noun, the commands that are added."""

    def add_to(self, commands: Any) -> None:
        """Adds them to a noun's Typer application."""
        import_module(self.module).add_to(commands)


class Rights(NamedTuple):
    """The operations of Kafka's ACLs that a command's user needs, by what they are about: `Describe`, `Read`."""

    metadata_topic: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandPackage:
    """What an entry point of the group `tieredctl.commands` names."""

    package: str
    """The Python package, which has the rows of its commands in TABLE: for completions and manual pages."""
    commands: tuple[Commands, ...]
    finding_kinds: Callable[[], Iterable[FindingKind]] = tuple
    """The kinds of findings that its commands alone make."""
    resumed: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Its commands that go on where they stopped, and the option without which each only shows a plan."""
    rights: Mapping[tuple[str, ...], Rights] = field(default_factory=dict)
    """Its commands that may ask brokers: all that have --bootstrap-server."""

    def table(self) -> str:
        """The rows of its commands; empty where it has none."""
        from importlib.resources import files  # needed for completions alone

        table = files(self.package).joinpath(TABLE)
        return table.read_text(encoding="utf-8") if table.is_file() else ""

    def nouns(self) -> dict[str, str]:
        """Its own nouns, with what the help says of each."""
        return {one.noun: one.meaning for one in self.commands if one.meaning is not None}

    def has(self, words: tuple[str, ...]) -> bool:
        """Whether a command of these words is this package's: as one of its verbs, or under a noun of its own."""
        return any(one.noun == words[0] and words[1] in one.verbs for one in self.commands if words[1:])


BEFORE_PACKAGES = "explain-code"
"""The noun after which lists of commands have those of packages."""
TABLE = "command_table.tsv"
"""The file in a package with the rows of its commands, which `make completions` writes."""


def command_packages() -> list[CommandPackage]:
    """The installed packages of commands, by name. Raises TieredctlError `missing-extra` where one cannot be loaded."""
    return [_PACKAGES.load(name) for name in _PACKAGES.names()]


def package_nouns() -> dict[str, Commands]:
    """The nouns of installed packages, by name."""
    named = {one.noun: one for package in command_packages() for one in package.commands if one.meaning is not None}
    return dict(sorted(named.items()))


def verbs_added(noun: str) -> list[Commands]:
    """What installed packages add to another's noun."""
    return [one for package in command_packages() for one in package.commands if one.noun == noun and one.verbs]
