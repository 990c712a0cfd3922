"""`tieredctl wal clean`: removes combined objects that nobody needs any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import clock_ms, percentage
from tieredctl.cli.commands.removal_outcome import ReceiptRow, demand_source
from tieredctl.cli.confirmation import ApplyChoice, demand_confirmation
from tieredctl.cli.findings.remedies import next_command
from tieredctl.cli.options import ClusterId, MinAge, OfflineMetadata, Yes
from tieredctl.cli.output import Item
from tieredctl.cli.places import MetadataOptions, TopicListOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.counted import counted
from tieredctl.model.pasteable import pasteable
from tieredctl.model.quantities import duration_ms, size_text
from tieredctl.model.removal import RemovalMode
from tieredctl_proposals.cli.wal_places import WalStoreOptions

# `wal inspect` loads this module for the verb's name: what it does is loaded when it is typed.
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tieredctl.ops.orphan_removal.apply import RemovalOutcome
    from tieredctl_proposals.ops.wal.clean import CleanPlan
    from tieredctl_proposals.wiring.wal import WalCleaning

LEAST_GIVEN_UP_MS = 3_600_000


def _needs(item: Item) -> str:
    """Why each segment may go, such as orders-0 TIERED."""
    return ", ".join(f"{one['topic']}-{one['partition']} {one['need']}" for one in item["segments"])


def _size(item: Item) -> object:
    return "not there" if item["size"] is None else item["size"]


def clean(
    *,
    store_options: WalStoreOptions,
    metadata_options: MetadataOptions,
    offline_metadata: OfflineMetadata = False,
    topic_lists: TopicListOptions,
    give_up_after: Annotated[
        str, typer.Option(metavar="DURATION", help="Uploads without an event for this long are given up: 1h or more.")
    ] = "24h",
    min_age: MinAge = "24h",
    allow_young: Annotated[
        bool, typer.Option("--allow-young", help="Allow a --min-age below 1h; only if nothing writes to the store.")
    ] = False,
    max_percent: Annotated[
        float,
        typer.Option(
            metavar="NUMBER", parser=percentage, help="Refuse to remove more than this share of the store's objects."
        ),
    ] = 10.0,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete permanently instead of moving to quarantine.")
    ] = False,
    choice: ApplyChoice,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    view: ProgressView,
) -> ExitCode:
    """Remove combined objects that nobody needs: each segment in them is in remote storage (KIP-405), deleted, below
    the log start, past retention, or of an upload that was given up.

    Objects move to quarantine; `orphans restore PLAN-ID --store URL` puts them back. What is not known keeps an object.
    If interrupted, run the same command again. Exit 5 if something is left, 3 if a plan is more than --max-percent.

    For example: tieredctl wal clean --store s3://bucket/wal --bootstrap-server broker-1:9092
    """
    apply = choice.is_made
    from tieredctl.ops.orphan_removal.limits import Limits, demand_age
    from tieredctl_proposals.ops.wal.clean import CleanedObjectRow

    given_up_ms = duration_ms(give_up_after)
    if given_up_ms < LEAST_GIVEN_UP_MS:
        message = "An upload without an event for less than an hour may still be in progress."
        raise TieredctlError(ErrorCode.AGE_TOO_LOW, message, hint="Give --give-up-after 1h or more.")
    limits = Limits(duration_ms(min_age), max_percent, max_missing=None)
    demand_age(limits.min_age_ms, allow_young=allow_young)
    with opened_cleaning(
        *(store_options, metadata_options, topic_lists),
        offline_metadata=offline_metadata,
        cluster_id=cluster_id,
        give_up_after_ms=given_up_ms,
    ) as cleaning:
        plan = cleaning.plan(limits)
        view.say(f"To remove from {plan.url}: {_amount(plan)}.", *_kept(plan))
        mode = RemovalMode.DELETE if delete else RemovalMode.QUARANTINE
        silence = plan.needs.silence
        completeness = ExitCode.CLEAN if silence is None else ExitCode.INCOMPLETE
        if not apply or not plan.has_work(mode):
            code = completeness if plan.needed_percent is None else worst(completeness, ExitCode.FINDINGS)
            advice = [] if silence is None else [silence]
            if plan.needed_percent is not None:
                advice.append(_excess(plan, plan.needed_percent))
            elif silence is None:
                advice += choice.advice(changes=plan.has_work(mode))
            return view.plan("WalCleanPlan", plan, CleanedObjectRow, code, advice, size=_size, segments=_needs)
        plan.demand_share()
        own_cluster_id = plan.cluster_id
        what = f"{'Permanently deleting' if delete else 'Removing'} {_amount(plan)} from {plan.url}"
        demand_confirmation(what, own_cluster_id, yes=yes, typed_cluster_id=cluster_id)
        assert own_cluster_id is not None
        cleaned = cleaning.apply(plan, own_cluster_id, mode, view.teller(_progress))
    outcome = cleaned.outcome
    view.say(f"Removed {outcome.done} of {counted(outcome.planned, 'object')}, {size_text(outcome.bytes)}.")
    if outcome.put_back:
        view.say(f"Put back {counted(outcome.put_back, 'object')} that had been removed, and may be needed.")
    if outcome.done and not delete:
        named = {"plan": cleaned.plan_id, "store": plan.url}
        undo = pasteable("tieredctl orphans restore {plan} --store {store} …", named)
        view.say(f"Undo with: {next_command(undo)}")
    did = {"applied": True, "planId": cleaned.plan_id, "events": cleaned.events}
    summary = {**plan.summary(), **outcome.counts(), **did}
    rows = [ReceiptRow.of(one, one.step.value) for one in cleaned.receipts]
    advice = [] if silence is None else [silence]
    code = view.end(result_listing("WalClean", plan.source(), ReceiptRow, rows, summary), outcome, advice=advice)
    return worst(code, completeness)


def opened_cleaning(
    store_options: WalStoreOptions,
    metadata_options: MetadataOptions,
    topic_lists: TopicListOptions,
    *,
    offline_metadata: bool,
    cluster_id: str | None,
    give_up_after_ms: int,
) -> AbstractContextManager[WalCleaning]:
    """The cleaning of a store by the metadata that was named. Raises TieredctlError where that must not decide."""
    from tieredctl_proposals.wiring.wal import wal_cleaning

    store = store_options.place()
    demand_source(
        metadata_options.bootstrap_server, offline_metadata=offline_metadata, are_listed=topic_lists.are_given
    )
    metadata = metadata_options.place()
    return wal_cleaning(
        *(store, metadata, topic_lists.beside(metadata)),
        cluster_id=cluster_id,
        give_up_after_ms=give_up_after_ms,
        clock_ms=clock_ms,
    )


def _amount(plan: CleanPlan) -> str:
    amount = f"{counted(len(plan.objects), 'object')}, {size_text(plan.bytes)}"
    return amount + (f", and events of {counted(len(plan.eventless), 'object')} more" if plan.eventless else "")


def _excess(plan: CleanPlan, needed_percent: int) -> str:
    share = f"That is more than {plan.limits.max_percent:g} % of the store, so that it is not applied as it is."
    return f"{share} Look at it first; if all of it should go, give --max-percent {needed_percent}."


def _kept(plan: CleanPlan) -> list[str]:
    kept = ", ".join(f"{count} {need}" for need, count in plan.needs.kept.items())
    return [f"Kept: {kept}."] if kept else []


def _progress(outcome: RemovalOutcome) -> str:
    return f"{outcome.done} of {outcome.planned} removed, {size_text(outcome.bytes)}"
