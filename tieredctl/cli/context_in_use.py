"""Where a command's cluster and store come from: the line, the environment, a context, the default; in this order.

A context's cluster and its store belong together. What the line or a variable names instead of one of them leaves the
current context out, unless --context was typed too: so nothing is looked up, or removed, in a store of another cluster
than the one that is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tieredctl.cli import named_context
from tieredctl.errors import ErrorCode, TieredctlError

if TYPE_CHECKING:
    from tieredctl.config.contexts import Chosen, Context


class Role(Enum):
    """What an option, or an argument, has to do with a context."""

    CLUSTER = "bootstrapServer"
    COMMAND_CONFIG = "commandConfig"
    STORE = "store"
    STORE_OPTIONS = "storeOptions"
    LAYOUT = "layout"
    LAYOUT_OPTIONS = "layoutOptions"
    INSTEAD = "instead"
    """Metadata from elsewhere than a live cluster."""
    ELSEWHERE = "elsewhere"
    """Another place, which the current context may know nothing of."""

    @property
    def is_in_contexts(self) -> bool:
        """Whether a context may have it."""
        return self not in (Role.INSTEAD, Role.ELSEWHERE)


_DETAILS = {
    Role.CLUSTER: (Role.COMMAND_CONFIG,),
    Role.STORE: (Role.STORE_OPTIONS, Role.LAYOUT, Role.LAYOUT_OPTIONS),
}
DEFAULT, LINE, ENVIRONMENT = "DEFAULT", "COMMANDLINE", "ENVIRONMENT"
"""Where a parameter's value is from, in the parser's words."""


@dataclass
class ContextInUse:
    """What a command took from where."""

    chosen: Chosen | None = None
    left_out_by: str | None = None
    """The option or variable that named another place."""
    origins: dict[Role, str] = field(default_factory=dict)
    """What gave a value; those with the default are not in it."""
    values: dict[Role, Any] = field(default_factory=dict)
    instead: dict[str, str] = field(default_factory=dict)
    """What gave the metadata from elsewhere than a live cluster, by its parameter."""

    @property
    def chosen_origin(self) -> str:
        """How values of the context are said to come from it."""
        return "" if self.chosen is None else f"context {self.chosen.context.name}"

    def places(self) -> str:
        """The cluster and the store that nobody typed, and where they are from; empty if all was typed."""
        names = {Role.CLUSTER: "cluster", Role.STORE: "store"}
        sentences = [
            f"{name} {self.values[role]} ({self.origins[role]})"
            for role, name in names.items()
            if role in self.origins and not self.origins[role].startswith("--")
        ]
        return ", ".join(sentences)


context_in_use: ContextVar[ContextInUse | None] = ContextVar("context_in_use", default=None)
"""What the command that runs took; None for one that takes nothing."""


def filled_in(
    parameters: Mapping[str, Any],
    roles: Mapping[str, Role],
    sources: Mapping[str, str],
    options: Mapping[str, str],
    *,
    changes: bool,
) -> dict[str, Any]:
    """A command's parameters with what the context adds to them.

    `sources` says for each where it is from, `options` how it is spelled there. Of commands that change something
    (`changes`), a context is taken whole or not at all. Raises TieredctlError `usage` where it would not be, and as
    `chosen_context` does.
    """
    return _Filling(dict(parameters), roles, sources, options, changes).filled()


@dataclass
class _Filling:
    values: dict[str, Any]
    roles: Mapping[str, Role]
    sources: Mapping[str, str]
    options: Mapping[str, str]
    changes: bool
    found: ContextInUse = field(default_factory=ContextInUse)

    def filled(self) -> dict[str, Any]:
        context_in_use.set(self.found)
        self._prefer_the_line()
        for name, role in self.roles.items():
            if self._is_given(name):
                self._note(role, name, self.options[name])
        if self._may_take():
            from tieredctl.config.contexts import chosen_context

            self.found.chosen = chosen_context(named_context.get())
            if self.found.chosen is not None:
                self._take(self.found.chosen)
        if self.changes:
            self._demand_no_forgotten_variable()
        return self.values

    def _demand_no_forgotten_variable(self) -> None:
        """A variable that was set long ago may mean another cluster or store than what is typed, or in a context."""
        heads = [self._parameter_of(Role.CLUSTER) or self._parameter_of(Role.INSTEAD), self._parameter_of(Role.STORE)]
        named = [name for name in heads if name is not None]
        if {self.sources[name] for name in named} == {LINE, ENVIRONMENT}:
            named.sort(key=lambda name: self.sources[name] == LINE)
            raise _two_places(*(self.options[name] for name in named))
        store = self._parameter_of(Role.STORE)
        if store is not None and self.sources[store] == ENVIRONMENT:
            return
        for role in _DETAILS[Role.STORE]:
            name = self._parameter_of(role)
            if name is not None and self.sources[name] == ENVIRONMENT:
                of_store = self.options[store] if store else self.found.chosen_origin or "what is typed"
                raise _two_places(self.options[name], of_store)

    def _prefer_the_line(self) -> None:
        """One source of metadata on the line makes another one of the environment meaningless."""
        of_metadata = [name for name, role in self.roles.items() if role in (Role.CLUSTER, Role.INSTEAD)]
        if any(self.sources[name] == LINE for name in of_metadata if self._is_given(name)):
            for name in of_metadata:
                if self.sources[name] == ENVIRONMENT:
                    self.values[name] = None
        if self._parameter_of(Role.INSTEAD) and not self._parameter_of(Role.CLUSTER):
            for name, role in self.roles.items():
                if role is Role.COMMAND_CONFIG and self.sources[name] == ENVIRONMENT:
                    self.values[name] = None

    def _is_given(self, name: str) -> bool:
        value = self.values[name]
        is_empty = value is None or value is False or (isinstance(value, list) and not value)
        return self.sources[name] != DEFAULT and not is_empty

    def _parameter_of(self, role: Role) -> str | None:
        return next((name for name, its in self.roles.items() if its is role and self._is_given(name)), None)

    def _note(self, role: Role, name: str, origin: str) -> None:
        self.found.origins[role] = origin
        self.found.values[role] = self.values[name]
        if role is Role.INSTEAD:
            self.found.instead[name] = origin

    def _may_take(self) -> bool:
        """Whether the context may matter, so that its file is read."""
        if not any(role.is_in_contexts for role in self.roles.values()):
            return False
        elsewhere = self._parameter_of(Role.INSTEAD) or self._parameter_of(Role.ELSEWHERE)
        if named_context.get() is not None or elsewhere is None:
            return True
        self.found.left_out_by = self.options[elsewhere]
        return False

    def _take(self, chosen: Chosen) -> None:
        other = self._other_place(chosen.context)
        if other is not None:
            if chosen.on_the_line and self.changes:
                message = f"{self.options[other]} and --context {chosen.context.name} name two places."
                hint = "A change takes cluster and store from one context; without it, name both yourself."
                raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
            if not chosen.on_the_line:
                self.found.left_out_by = self.options[other]
                return
        for head, details in _DETAILS.items():
            own = _value(chosen.context, head)
            name, typed = self._name(head), self._parameter_of(head)
            if own is None or name is None or (typed is not None and self.values[typed] != own):
                continue
            if head is Role.CLUSTER and self._parameter_of(Role.INSTEAD):
                continue
            for role in (head, *details):
                self._take_one(chosen.context, role)
        if chosen.context.prices and self.found.values.get(Role.STORE) == chosen.context.store:
            from tieredctl.config.file import prices_of_context

            prices_of_context.set(chosen.context.prices)

    def _other_place(self, context: Context) -> str | None:
        """The parameter that names another cluster or store than the context."""
        for head in _DETAILS:
            typed = self._parameter_of(head)
            if typed is not None and self.values[typed] != _value(context, head):
                return typed
        return None

    def _name(self, role: Role) -> str | None:
        return next((name for name, its in self.roles.items() if its is role), None)

    def _take_one(self, context: Context, role: Role) -> None:
        name, own = self._name(role), _value(context, role)
        if name is None or own is None:
            return
        if isinstance(own, list):
            self.values[name] = [*own, *(self.values[name] or ())]  # of two values for a name, the last counts
        elif self._is_given(name):
            return
        else:
            self.values[name] = own
        typed = self.found.origins.get(role)
        origin = self.found.chosen_origin
        self._note(role, name, origin if typed is None else f"{typed}, {origin}" if isinstance(own, list) else typed)


def _two_places(variable: str, other: str) -> TieredctlError:
    message = f"{variable} is set, and may mean another place than {other}."
    hint = f"A change takes all from the line, from variables, or from a context: unset {variable}, and type its value."
    return TieredctlError(ErrorCode.USAGE, message, hint=hint)


def _value(context: Context, role: Role) -> Any:
    """A context's value as the option has it; None where it has none."""
    match role:
        case Role.CLUSTER:
            return context.bootstrap_server and _servers(context)
        case Role.COMMAND_CONFIG:
            return context.command_config and Path(context.command_config).expanduser()
        case Role.STORE:
            return context.store
        case Role.LAYOUT:
            return context.layout
        case Role.STORE_OPTIONS | Role.LAYOUT_OPTIONS:
            pairs = context.store_options if role is Role.STORE_OPTIONS else context.layout_options
            return [f"{name}={value}" for name, value in pairs.items()] or None
    return None


def _servers(context: Context) -> str:
    from tieredctl.cli.arguments import bootstrap_servers
    from tieredctl.config.file import bad

    assert context.bootstrap_server is not None
    try:
        return bootstrap_servers(context.bootstrap_server)
    except TieredctlError:
        raise bad(f"bootstrapServer of context {context.name} is not HOST:PORT") from None


def with_hint(error: TieredctlError) -> TieredctlError:
    """An error for lack of a place, with the reason why the current context did not give it."""
    in_use = context_in_use.get()
    if error.code not in (ErrorCode.NO_STORE, ErrorCode.NO_SOURCE) or in_use is None or in_use.left_out_by is None:
        return error
    chosen = in_use.chosen or _current()
    if chosen is None:
        return error
    name = chosen.context.name
    hint = (
        f"Context {name} is not used, because {in_use.left_out_by} names another place: give both, or --context {name}."
    )
    return TieredctlError(error.code, error.message, hint=hint)


def _current() -> Chosen | None:
    """Only to mention it."""
    from tieredctl.config.contexts import chosen_context

    try:
        return chosen_context(None)
    except TieredctlError:
        return None


def details_of(store: str, role: Role, typed: list[str] | None) -> list[str] | None:
    """The options for a store that a file named: the context's, if it is the context's store, and those typed."""
    in_use = context_in_use.get()
    if (
        in_use is None
        or in_use.chosen is None
        or in_use.left_out_by is not None
        or in_use.chosen.context.store != store
    ):
        return typed
    return [*(_value(in_use.chosen.context, role) or ()), *(typed or ())]
