"""`tieredctl orphans quarantine ls` and `orphans unlock`: what tieredctl keeps in a store, shown; a lease, broken."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import clock_ms, pairs
from tieredctl.cli.confirmation import can_ask, demand_typed
from tieredctl.cli.findings.remedies import next_command
from tieredctl.cli.options import TieredStore, TieredStoreOptions
from tieredctl.cli.outcome import say
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView, View
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.pasteable import quoted
from tieredctl.model.printable import printable
from tieredctl.model.result_row import Column, Quantity, ResultRow, Size
from tieredctl.ops.documents import Document
from tieredctl.wiring.places import StorePlace

# `orphans scan` loads this module for the verbs' names: what they do is loaded when they are typed.
if TYPE_CHECKING:
    from tieredctl.ops.guards.lease import FoundLease
    from tieredctl.ops.guards.quarantine_keys import Quarantined
    from tieredctl.ports.object_store import StoredObject

quarantine = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
"""The commands below `orphans quarantine`."""


@dataclass(frozen=True, slots=True)
class _CopyRow(ResultRow):
    """An object in quarantine."""

    key: str
    size: Size[int]
    last_modified: str | None
    cluster_id: str | None
    plan_id: str
    quarantined: str | None
    quarantine_key: str


@dataclass(frozen=True, slots=True)
class _PlanRow(ResultRow):
    """The copies of one plan, and when they came into quarantine."""

    plan_id: str
    cluster_id: str | None
    objects: int
    bytes: Size[int]
    oldest: Annotated[str | None, Column(quantity=Quantity.MOMENT)]
    newest: Annotated[str | None, Column(quantity=Quantity.MOMENT)]


@dataclass(frozen=True, slots=True)
class _LeaseRow(ResultRow):
    """A lease; None is a time that is not known."""

    holder: str
    command: str
    since: str | None
    until: str | None
    held: bool


@dataclass(slots=True)
class _Totals:
    """The sums of one plan's copies: when they came into quarantine, in ms."""

    objects: int = 0
    bytes: int = 0
    oldest_ms: int = sys.maxsize
    newest_ms: int = 0

    def add(self, size: int, at_ms: int) -> None:
        self.objects += 1
        self.bytes += size
        self.oldest_ms, self.newest_ms = min(self.oldest_ms, at_ms), max(self.newest_ms, at_ms)


@quarantine.command("ls")
def ls(
    *,
    store: TieredStore = None,
    store_option: TieredStoreOptions = None,
    view: ProgressView,
) -> ExitCode:
    """List the quarantine: tables show totals by plan, other formats each object. Changes nothing.

    For example: tieredctl orphans quarantine ls --store s3://kafka-tiered
    """
    from tieredctl.wiring.orphan_removal import opened_quarantine

    if store is None:
        raise TieredctlError(ErrorCode.NO_STORE, "No store was given, so there is no quarantine to list.")
    opened = opened_quarantine(StorePlace(store, pairs("--store-option", store_option)))
    by_plan: dict[tuple[str, str | None], _Totals] = {}

    def summary() -> Document:
        totals = by_plan.values()
        sums = {"objects": sum(one.objects for one in totals), "bytes": sum(one.bytes for one in totals)}
        return {"plans": len(by_plan), **sums}

    copies = _copies(opened.copies, by_plan)
    source = {"store": opened.url}
    if not view.is_table:
        return view.show(result_listing("Quarantine", source, _CopyRow, copies, summary))
    for _ in copies:
        pass
    rows = [
        _PlanRow(*names, one.objects, one.bytes, _time(one.oldest_ms), _time(one.newest_ms))
        for names, one in by_plan.items()
    ]
    code = view.show(result_listing("Quarantine", source, _PlanRow, rows, summary))
    if rows:
        plan_id = quoted(rows[0].plan_id) if len(rows) == 1 else "PLAN-ID"
        restore = next_command(f"tieredctl orphans restore {plan_id} …")
        view.say(f"Put a plan's objects back with: {restore}")
    else:
        view.say(f"The quarantine of {opened.url} is empty.")
    return code


def unlock(
    *,
    store: TieredStore = None,
    store_option: TieredStoreOptions = None,
    holder: Annotated[
        str | None, typer.Option(metavar="HOST:PID", help="Break the lease only if this run holds it.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; needs --holder.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show who holds the lease.")] = False,
    view: View,
) -> ExitCode:
    """Show which run holds a store's lease; break the lease of a dead run.

    Name the holder to break its lease; a run that is still alive notices, and stops before its next deletion.

    For example: tieredctl orphans unlock --holder host-1:4711 --store s3://kafka-tiered
    """
    from tieredctl.wiring.orphan_removal import store_lease

    if store is None:
        raise TieredctlError(ErrorCode.NO_STORE, "No store to unlock was given.")
    lease = store_lease(StorePlace(store, pairs("--store-option", store_option)), clock_ms)
    held_lease, held = lease.found, lease.is_held
    if held_lease is not None and held:
        view.say(_sentence(lease.url, held_lease))
        if not dry_run:
            _demand_named(held_lease, holder, yes=yes)
            lease.free()
            say(printable(f"The lease of {lease.url} is free."))
    else:
        view.say(f"{lease.url} is not locked.")
    rows = []
    if held_lease is not None:
        times = _time(held_lease.since_ms), _time(held_lease.until_ms)
        rows.append(_LeaseRow(held_lease.holder, held_lease.purpose, *times, held))
    summary = {"held": held, "broken": held and not dry_run}
    return view.show(result_listing("Lease", {"store": lease.url}, _LeaseRow, rows, summary))


def _copies(
    copies: Iterable[tuple[StoredObject, Quarantined]], by_plan: dict[tuple[str, str | None], _Totals]
) -> Iterator[_CopyRow]:
    for copy, original in copies:
        by_plan.setdefault((original.plan_id, original.cluster_id), _Totals()).add(copy.size, copy.last_modified_ms)
        yield _CopyRow(
            *(original.key, copy.size, _time(original.last_modified_ms), original.cluster_id, original.plan_id),
            *(_time(copy.last_modified_ms), copy.key),
        )


def _sentence(url: str, lease: FoundLease) -> str:
    since = f" since {_time(lease.since_ms)}" if lease.since_ms is not None else ""
    sentence = (
        f"{url} is locked by {lease.holder} ({lease.purpose}){since}, until {_time(lease.until_ms)} unless renewed."
    )
    alive = _runs_here(lease.holder)
    return (
        sentence
        if alive is None
        else f"{sentence} That process is {'running' if alive else 'not running'} on this host."
    )


def _runs_here(holder: str) -> bool | None:
    """Whether the process is there; None for one of another host."""
    host, _, pid = holder.rpartition(":")
    if host != socket.gethostname() or not (pid.isascii() and pid.isdigit() and len(pid) < 10):
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _demand_named(lease: FoundLease, holder: str | None, *, yes: bool) -> None:
    if holder is not None and holder != lease.holder:
        raise TieredctlError(ErrorCode.NOT_CONFIRMED, f"The lease is held by {lease.holder}, not by {holder}.", hint="")
    if yes and holder is not None:
        return
    if yes or not can_ask():
        hint = "If that run is dead, give --yes and --holder, or run this on a terminal."
        raise TieredctlError(ErrorCode.NOT_CONFIRMED, "Breaking a lease needs confirmation.", hint=hint)
    demand_typed(lease.holder, f"Type the holder, {lease.holder}, to break its lease")


def _time(ms: int | None) -> str | None:
    """A time as text; None where it is not known, or is not a time: anybody may have written keys and leases."""
    from tieredctl.ops.remote.inventory import iso_8601

    return None if ms is None else iso_8601(ms)
