"""`tieredctl topic disable`: KIP-950's ways out of tiered storage, after what each brings with it was shown."""

from __future__ import annotations

from typing import Annotated

import typer

from tieredctl.cli.commands.topic_change import ApplyOptions, Shown, Topic, Waiting, describe_change, make
from tieredctl.cli.places import ClusterOptions
from tieredctl.cli.view import FindingListView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.quantities import size_text
from tieredctl.ops.tiering.deletion_at_once import MOST_SEGMENTS
from tieredctl.ops.tiering.disable import DisablePlan, Form
from tieredctl.ops.tiering.watching import Seen
from tieredctl.wiring.topic_change import topic_disabling

_ENDS = {Seen.YES: "Topic {name} has nothing left in remote storage."}
"""What to report when the wait ends in time."""


def disable(
    *,
    topic: Topic,
    cluster_options: ClusterOptions,
    stop_copying: Annotated[
        bool,
        typer.Option(
            "--stop-copying", help="Stop copying (remote.log.copy.disable); remote segments can still be read."
        ),
    ] = False,
    delete: Annotated[
        bool,
        typer.Option("--delete", help="Stop tiering, and delete the remote segments (remote.log.delete.on.disable)."),
    ] = False,
    at_once: Annotated[
        bool,
        typer.Option(
            "--at-once", help=f"With --delete: let brokers delete more than {MOST_SEGMENTS} segments at once."
        ),
    ] = False,
    applying: ApplyOptions,
    view: FindingListView,
) -> ExitCode:
    """Stop copying a topic to remote storage, or stop tiering it and delete what it has there (KIP-950, since 3.9).

    Shows what would be deleted, which part of it exists nowhere else, and the local disk needed to keep that. --apply
    changes the settings in one request, and after --delete waits for the last deletion. Kafka keeps no remote data of a
    topic that is not tiered: to lose nothing, stop copying, let retention empty remote storage, then delete. Do so as
    well if much is in remote storage: brokers apply no cluster metadata while they delete.

    For example: tieredctl topic disable orders --stop-copying --bootstrap-server broker:9092
    """
    if stop_copying == delete:
        raise TieredctlError(ErrorCode.USAGE, "Give one of --stop-copying and --delete.")
    if at_once and not delete:
        raise TieredctlError(ErrorCode.USAGE, "--at-once is for --delete.")
    patience = applying.patience()
    form = Form.DELETE if delete else Form.STOP_COPYING
    place = cluster_options.place()
    with topic_disabling(place, topic, form, at_once=at_once) as disabling:
        plan, summary = disabling.plan, disabling.plan.summary()
        shown = Shown("TopicDisable", disabling.source, view)
        _say_plan(plan, shown)
        if not applying.is_made or plan.change.is_empty or plan.is_refused:
            return shown.plan(summary, plan, applying)
        applying.demand_confirmation(_what(plan), disabling.cluster_id)
        waiting = Waiting(patience, "segments are deleted", _ENDS)
        return shown.end(summary, plan, make(disabling, shown, waiting if delete and not applying.no_wait else None))


def _say_plan(plan: DisablePlan, shown: Shown) -> None:
    name = plan.change.topic.topic
    if plan.change.is_empty:
        is_off = "is no longer copied" if plan.was_tiered else "is not tiered"
        shown.say(f"Topic {name} {is_off}: nothing to change.")
        return
    shown.say(f"Topic {name}: {describe_change(plan.change)}")
    if plan.partitions:
        _say_effects(plan, shown)
    for number, step in enumerate(plan.steps, 1):
        shown.say(f"{number}. {step}")


def _say_effects(plan: DisablePlan, shown: Shown) -> None:
    summary = plan.summary()
    kept = "are deleted" if plan.form is Form.DELETE else "stay until their retention ends"
    shown.say(f"In remote storage: {_remote_amount(plan)}; they {kept}")
    for one in summary["brokers"]:
        free = "; free disk is unknown" if one["freeBytes"] is None else f"; {size_text(one['freeBytes'])} is free"
        needed = f"keeping locally what is only remote takes {(plan.local_bytes_needed or {})[one['brokerId']]}"
        shown.say(f"Broker {one['brokerId']}: {needed}{free}")


def _what(plan: DisablePlan) -> str:
    what = f"Changing topic {plan.change.topic.topic} ({describe_change(plan.change)})"
    if plan.form is Form.STOP_COPYING:
        return what
    doomed = _remote_amount(plan)
    return f"{what} and deleting {doomed} ({plan.only_remote_size} of it nowhere else)"


def _remote_amount(plan: DisablePlan) -> str:
    segments = sum(one.segments for one in plan.partitions)
    return f"{counted(segments, 'segment')}, {plan.remote_size}"
