"""`tieredctl topic enable`: tiers a topic, after all that speaks against it was looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import GREATEST_INT64, clock_ms, given_path
from tieredctl.cli.commands.topic_change import ApplyOptions, Shown, Topic, Waiting, describe_change, make
from tieredctl.cli.context_in_use import Role
from tieredctl.cli.places import ClusterOptions
from tieredctl.cli.view import FindingListView
from tieredctl.config.file import storage_price
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document
from tieredctl.ops.tiering.enable import EnablePlan, LocalRetention
from tieredctl.ops.tiering.watching import Seen
from tieredctl.wiring.timelines import local_replicas
from tieredctl.wiring.topic_change import topic_enabling

_ENDS = {
    Seen.YES: "Topic {name} has its first segment in remote storage.",
    Seen.NOTHING_TO_SEE: (
        "Topic {name} has no closed segment yet to copy: the first is copied once segment.bytes or segment.ms "
        "closes it and its copy lag is over."
    ),
    Seen.LIKE_BEFORE: (
        "What topic {name} had in remote storage before is unknown, so its first segment cannot be recognized: "
        "`tieredctl metadata segments --topic {name}` lists what is there."
    ),
    Seen.CANNOT_TELL: "These brokers do not report what is tiered: `{status}` reads it elsewhere.",
}
"""What to report when the wait ends in time, by how it ends."""


def enable(
    *,
    topic: Topic,
    cluster_options: ClusterOptions,
    local_retention_ms: Annotated[
        int | None,
        typer.Option(metavar="MS", help="local.retention.ms; unchanged by default.", min=-2, max=GREATEST_INT64),
    ] = None,
    local_retention_bytes: Annotated[
        int | None,
        typer.Option(metavar="BYTES", help="local.retention.bytes; likewise.", min=-2, max=GREATEST_INT64),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The store it is copied to, only to look up its prices in the configuration."),
        Role.STORE,
    ] = None,
    log_dir: Annotated[
        list[Path] | None,
        typer.Option(
            "--log-dir",
            metavar="DIR",
            parser=given_path,
            help="A broker's log directory, to check its segments; repeat it for several.",
        ),
    ] = None,
    applying: ApplyOptions,
    view: FindingListView,
) -> ExitCode:
    """Tier a topic, or resume copying: shows checks, estimates, and settings before and after.

    --apply changes the settings in one request, and waits for the first segment in remote storage; errors among the
    checks prevent it. Exit 3 if the checks find something, 5 if the first segment did not appear in time.

    For example: tieredctl topic enable orders --local-retention-ms 86400000 --bootstrap-server broker:9092
    """
    patience = applying.patience()
    local = LocalRetention(local_retention_ms, local_retention_bytes)
    price, replicas = None if store is None else storage_price(store), local_replicas(log_dir)
    place = cluster_options.place()
    with topic_enabling(place, topic, local, replicas, clock_ms()) as enabling:
        plan, summary = enabling.plan, enabling.plan.summary(price)
        shown = Shown("TopicEnable", enabling.source, view)
        _say_plan(plan, shown, summary)
        if store is not None and price is None and not plan.change.is_empty:
            shown.say(f"What it costs is unknown: `prices` in the configuration file has no price for {store}.")
        if not applying.is_made or plan.change.is_empty or plan.is_refused:
            return shown.plan(summary, plan, applying)
        what = f"Changing topic {topic} ({describe_change(plan.change)})"
        applying.demand_confirmation(what, enabling.cluster_id)
        waiting = Waiting(patience, "partitions have a segment", _ENDS)
        outcome = make(enabling, shown, waiting if plan.begins_copying and not applying.no_wait else None)
        return shown.end(summary, plan, outcome)


def _say_plan(plan: EnablePlan, shown: Shown, summary: Document) -> None:
    name, estimate = plan.change.topic.topic, summary["estimate"]
    if estimate is None:
        shown.say(f"Topic {name} is tiered and has these settings: nothing to change.")
        return
    shown.say(f"Topic {name}: {describe_change(plan.change)}")
    for one in estimate["brokers"]:
        quota, seconds = one["copyMaxBytesPerSecond"], one["seconds"]
        pace = "without a quota" if quota is None else f"in {_amount_text(seconds)} s at {size_text(quota)} a second"
        pace = pace if one["copyQuotaKnown"] else "at an unknown quota"
        to_copy, freed = one["bytesToCopy"], one["freedBytes"]
        copied = f"{'an unknown size' if to_copy is None else f'up to {size_text(to_copy)}'} to copy {pace}"
        disk = f"{'an unknown size' if freed is None else f'about {size_text(freed)}'} of disk to be freed"
        shown.say(f"Broker {one['brokerId']}: {copied}, {disk}")
    if estimate["bytesToCopy"] is None:
        shown.say("In all: unknown bytes, segments and requests, since not everything can be seen")
    else:
        segments, requests = counted(estimate["segments"], "segment"), counted(estimate["requestsAtLeast"], "request")
        amount = f"{size_text(estimate['bytesToCopy'])}, {segments}, {requests}"
        shown.say(f"In all: {amount} or more{_cost(estimate)}")
    if (waiting := estimate["waitingBytes"]) != 0:
        much = "how much is unknown" if waiting is None else f"about {size_text(waiting)} of it"
        shown.say(f"The copy lag keeps part of it out of remote storage while disks have it: {much}")


def _amount_text(amount: int | None) -> int | str:
    return "unknown" if amount is None else amount


def _cost(estimate: Document) -> str:
    if "currency" not in estimate:
        return ""
    requests, currency = estimate["requestsCost"], estimate["currency"]
    once = "" if requests is None else f"{requests} {currency} once and "
    return f": {once}{estimate['storageCostPerMonth']} {currency} a month"
