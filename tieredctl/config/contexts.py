"""Contexts: clusters with their remote store, by names, in the configuration file and in files of their own beside it.

None of them has a secret: a file of client properties is named, and clouds are logged in to as their own tools do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tieredctl.config.file import (
    CONTEXTS,
    CURRENT_CONTEXT,
    bad,
    configuration_path,
    contexts_folder,
    demand_own,
    demand_prices,
    mapping_in,
    own_bytes,
    settings,
)
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.process.redaction import is_secret, redacted

VARIABLE = "TIEREDCTL_CONTEXT"
SUFFIX, CURRENT = ".yaml", "current"
"""In the folder of contexts: what their files end with, and the file with the name of the current one."""
_USE = "Choose one with `tieredctl context use`, or none with --none."
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_KEY_FILE = "private-key"
"""A layout's option that names a file."""
_SECRETS = "secrets belong into the file that commandConfig names, or to where the cloud's own tools look for them"


@dataclass(frozen=True, slots=True)
class Context:
    """A cluster, and the remote store of its tiered topics; each part may be missing."""

    name: str
    bootstrap_server: str | None = None
    command_config: str | None = None
    """The path of a file of client properties."""
    store: str | None = None
    store_options: Mapping[str, str] = field(default_factory=dict)
    layout: str | None = None
    layout_options: Mapping[str, str] = field(default_factory=dict)
    prices: tuple[object, ...] = ()
    """A table as that of the file."""

    def entry(self) -> dict[str, Any]:
        """What a file says of it."""
        fields_given = {spelled: getattr(self, attribute) for spelled, attribute in FIELDS.items()}
        return {name: list(value) if name == "prices" else value for name, value in fields_given.items() if value}


FIELDS = {
    "bootstrapServer": "bootstrap_server",
    "commandConfig": "command_config",
    "store": "store",
    "storeOptions": "store_options",
    "layout": "layout",
    "layoutOptions": "layout_options",
    "prices": "prices",
}
"""The names in the file, and the attributes."""
_OPTIONS = ("storeOptions", "layoutOptions")


class Contexts(NamedTuple):
    """All there are, and which of them is current."""

    by_name: Mapping[str, Context]
    current: str | None

    def named(self, name: str, by: str = "") -> Context:
        """Raises TieredctlError `usage` where there is none; `by` is who names it, if it was not typed."""
        if name not in self.by_name:
            names = ", ".join(self.by_name)
            hint = f"There are: {names}." if names else "Add one with `tieredctl context add`."
            raise TieredctlError(
                ErrorCode.USAGE, f"There is no context {name!r}{by and f', which {by} names'}.", hint=hint
            )
        return self.by_name[name]


class Chosen(NamedTuple):
    """The context for a command."""

    context: Context
    by: str
    """What chose it: `--context`, the variable, or the file's setting."""

    @property
    def on_the_line(self) -> bool:
        """Whether it was typed with the command."""
        return self.by == OPTION


OPTION = "--context"


def chosen_context(typed: str | None) -> Chosen | None:
    """The context that was typed; otherwise that of the variable, otherwise the file's current one. None without any.
    Raises TieredctlError `usage` if there is none of that name, and `bad-config` for a file that cannot be used."""
    if typed is not None:
        return Chosen(contexts().named(typed), OPTION)
    if name := os.environ.get(VARIABLE):
        return Chosen(contexts().named(name, VARIABLE), VARIABLE)
    configured = contexts()
    return None if configured.current is None else Chosen(configured.by_name[configured.current], CURRENT_CONTEXT)


def contexts() -> Contexts:
    """The contexts of the configuration file and those beside it. Raises TieredctlError `bad-config` if a file cannot
    be used, and where the current one is none of them."""
    by_name, (current, path) = {**written_contexts(), **kept_contexts()}, current_context()
    if current is not None and current not in by_name:
        raise bad(f"{CURRENT_CONTEXT} does not name one of the contexts", hint=_USE, path=path)
    return Contexts(by_name, current)


def written_contexts() -> Mapping[str, Context]:
    """The contexts of the configuration file. Raises TieredctlError `bad-config`."""
    entries = settings().get(CONTEXTS) or {}
    if not isinstance(entries, Mapping):
        raise bad(f"{CONTEXTS} is not a mapping of names to contexts")
    return {_demand_name(name): _context(name, entry) for name, entry in entries.items()}


def kept_contexts() -> Mapping[str, Context]:
    """The contexts in files of their own, which go before others of their names. Raises TieredctlError `bad-config`."""
    folder = contexts_folder()
    try:
        status = folder.stat()
        files = sorted(file for file in folder.iterdir() if file.suffix == SUFFIX and not file.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise bad(f"it cannot be read: {error.strerror}", path=folder) from None
    demand_own(folder, status, is_folder=True)
    return {file.stem: _kept_context(file) for file in files}


def _kept_context(file: Path) -> Context:
    entry = mapping_in(own_bytes(file) or b"", file)
    try:
        return _context(_demand_name(file.stem), entry)
    except TieredctlError as error:
        raise bad(_reason(error), path=file) from None


def current_context() -> tuple[str | None, Path]:
    """The name that `context use` kept, which may be none; otherwise that of the configuration file. And the file that
    says so. Raises TieredctlError `bad-config`."""
    path = contexts_folder() / CURRENT
    kept = own_bytes(path)
    if kept is not None:
        return kept.decode("utf-8", "replace").strip() or None, path
    current = settings().get(CURRENT_CONTEXT)
    if current is not None and not isinstance(current, str):
        raise bad(f"{CURRENT_CONTEXT} is not a name")
    return current, configuration_path()


def demand_context(context: Context) -> None:
    """Raises TieredctlError `usage` for a name or a value that the file cannot have."""
    try:
        _context(_demand_name(context.name), context.entry())
    except TieredctlError as error:
        raise TieredctlError(ErrorCode.USAGE, f"This context cannot be added: {_reason(error)}.") from None


def _reason(error: TieredctlError) -> str:
    return error.message.partition(" cannot be used: ")[2].removesuffix(".")


def _demand_name(name: object) -> str:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise bad(
            "a context's name has letters, digits, '.', '_' and '-', 100 at most, and is quoted if it is a number"
        )
    return name


def _context(name: str, entry: object) -> Context:
    if not isinstance(entry, Mapping):
        raise bad(f"context {name} is not a mapping")
    for key in entry:
        if key not in FIELDS:
            reason = f"; {_SECRETS}" if is_secret(str(key)) else f"; there are {', '.join(FIELDS)}"
            raise bad(f"context {name} has no setting {str(key)[:100]!r}{reason}")
    values: dict[str, Any] = {}
    for spelled, attribute in FIELDS.items():
        if entry.get(spelled) is None:
            continue
        if spelled in _OPTIONS:
            values[attribute] = _options(name, spelled, entry[spelled])
        elif spelled == "prices":
            demand_prices(entry[spelled])
            values[attribute] = tuple(entry[spelled])
        else:
            values[attribute] = _text(f"{spelled} of context {name}", entry[spelled])
    context = Context(name, **values)
    _demand_consistent(context)
    return context


def _demand_consistent(context: Context) -> None:
    if context.command_config is not None and context.bootstrap_server is None:
        raise bad(f"context {context.name} has commandConfig, but no bootstrapServer")
    if context.store is None and (context.store_options or context.layout or context.layout_options):
        raise bad(f"context {context.name} has settings of a store, but no store")
    if context.store is not None and "@" in context.store:
        _demand_no_credentials(context.name, context.store)


def _demand_no_credentials(name: str, store: str) -> None:
    from tieredctl.ports.store_kinds import demand_no_credentials

    try:
        demand_no_credentials(store)
    except TieredctlError:
        raise bad(f"store of context {name} contains credentials, or something like them") from None


def _options(name: str, spelled: str, options: object) -> dict[str, str]:
    where = f"{spelled} of context {name}"
    if not isinstance(options, Mapping):
        raise bad(f"{where} is not a mapping of names to values")
    checked = {}
    for option, value in options.items():
        if not isinstance(option, str) or not option or "=" in option:
            raise bad(f"{where} has a name that is not a text")
        if is_secret(option) and not (spelled == "layoutOptions" and option == _KEY_FILE):
            raise bad(f"{where} has {option[:100]!r}, which may be a secret; {_SECRETS}")
        checked[option] = _text(f"{option} in {where}", value)
    return checked


def _text(what: str, value: object) -> str:
    if not isinstance(value, str) or not value or len(value) > 10_000 or not value.isprintable():
        raise bad(f"{what} is not a text of one line")
    if redacted(value) != value:
        raise bad(f"{what} contains what may be a secret; {_SECRETS}")
    return value
