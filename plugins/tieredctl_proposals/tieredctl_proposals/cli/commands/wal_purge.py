"""`tieredctl wal purge`: deletes what `wal clean` moved to quarantine long ago."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.commands.removal_purge import unproven_sentence
from tieredctl.cli.confirmation import ApplyChoice, demand_confirmation
from tieredctl.cli.options import ClusterId, OfflineMetadata, Yes
from tieredctl.cli.places import MetadataOptions, TopicListOptions
from tieredctl.cli.removal_options import PurgeShare
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms, size_text
from tieredctl_proposals.cli.commands.wal_clean import LEAST_GIVEN_UP_MS, opened_cleaning
from tieredctl_proposals.cli.wal_places import WalStoreOptions

# `wal inspect` loads this module for the verb's name: what it does is loaded when it is typed.
if TYPE_CHECKING:
    from tieredctl_proposals.ops.wal.purge import PurgePlan


def purge(
    *,
    older_than: Annotated[
        str,
        typer.Option(metavar="DURATION", help="Delete what has been in quarantine for longer than this: 1h or more."),
    ],
    max_percent: PurgeShare = 10.0,
    store_options: WalStoreOptions,
    metadata_options: MetadataOptions,
    offline_metadata: OfflineMetadata = False,
    topic_lists: TopicListOptions,
    choice: ApplyChoice,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    view: ProgressView,
) -> ExitCode:
    """Permanently delete old copies of combined objects that `wal clean` moved to quarantine, and nobody needs.

    Everything is judged again. Exit 5 if a copy that is old enough is kept. For example: tieredctl wal purge
    --older-than 7d --store s3://bucket/wal --bootstrap-server broker-1:9092
    """
    apply = choice.is_made
    from tieredctl.ops.orphan_removal.purge import LEAST_AGE_MS
    from tieredctl_proposals.ops.wal.purge import PurgedCopyRow

    age_ms = duration_ms(older_than)
    if age_ms < LEAST_AGE_MS:
        message = "Objects that entered quarantine less than an hour ago are not deleted."
        raise TieredctlError(ErrorCode.AGE_TOO_LOW, message, hint="Give an --older-than of 1h or more.")
    with opened_cleaning(
        *(store_options, metadata_options, topic_lists),
        offline_metadata=offline_metadata,
        cluster_id=cluster_id,
        give_up_after_ms=LEAST_GIVEN_UP_MS,
    ) as cleaning:
        plan = cleaning.plan_purge(age_ms, max_percent if apply else 100)
        amount = f"{counted(len(plan.copies), 'copy', 'copies')}, {size_text(plan.summary()['bytes'])}"
        view.say(f"To delete from the quarantine of {plan.url}: {amount}; {plan.kept} kept.", *_kept(plan))
        completeness = ExitCode.CLEAN if plan.is_complete else ExitCode.INCOMPLETE
        if not apply or not plan.copies:
            advice = choice.advice(changes=bool(plan.copies))
            return view.plan("WalPurgePlan", plan, PurgedCopyRow, completeness, advice)
        what = f"Permanently deleting {amount}, from the quarantine of {plan.url}"
        demand_confirmation(what, plan.limits.cluster_id, yes=yes, typed_cluster_id=cluster_id)
        outcome = cleaning.purge(plan)
    view.say(f"Deleted {outcome.done} of {counted(outcome.planned, 'copy', 'copies')}.")
    summary = plan.summary() | outcome.counts() | {"applied": True}
    code = view.end(result_listing("WalPurge", plan.source(), PurgedCopyRow, plan.rows(), summary), outcome)
    return worst(code, completeness)


def _kept(plan: PurgePlan) -> Iterator[str]:
    """Why copies stay that are old enough."""
    if plan.unproven:
        yield unproven_sentence(plan.unproven)
    if plan.silence is not None:
        yield plan.silence
