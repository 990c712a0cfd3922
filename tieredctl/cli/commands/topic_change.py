"""What `topic enable` and `topic disable` share: the plan as it is shown, the confirmation, and the wait afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import typer

from tieredctl.cli.confirmation import ApplyChoice, demand_confirmation
from tieredctl.cli.findings.remedies import next_command
from tieredctl.cli.options import ClusterId, Yes
from tieredctl.cli.output import Listing
from tieredctl.cli.view import FindingListView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.pasteable import pasteable
from tieredctl.model.quantities import duration_ms
from tieredctl.ops.change import Outcome
from tieredctl.ops.documents import Document
from tieredctl.ops.tiering.config_change import ConfigChange
from tieredctl.ops.tiering.watching import Patience, Seen
from tieredctl.process.interruption import critical_section, mark_complete
from tieredctl.process.progress import note
from tieredctl.wiring.topic_change import TopicChange, TopicPlan

_UNSET = "(not set)"

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")]
_NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait until the change takes effect.")]
_Timeout = Annotated[
    str, typer.Option(metavar="DURATION", help="Wait at most this long for the change to take effect.")
]


@dataclass(frozen=True, slots=True)
class ApplyOptions(ApplyChoice):
    """Whether a change is made, what confirms it, and how its effect is awaited."""

    no_wait: _NoWait = False
    timeout: _Timeout = "5m"
    cluster_id: ClusterId = None
    yes: Yes = False

    def patience(self) -> Patience:
        """Raises TieredctlError where the timeout is not a duration."""
        return Patience(duration_ms(self.timeout) / 1000)

    def demand_confirmation(self, what: str, cluster_id: str | None) -> None:
        """Raises TieredctlError unless it is confirmed."""
        demand_confirmation(what, cluster_id, yes=self.yes, typed_cluster_id=self.cluster_id)


@dataclass(frozen=True, slots=True)
class Shown:
    """How a command that changes a topic shows its plan and outcome: findings are the rows."""

    kind: str
    source: Mapping[str, Any]
    view: FindingListView

    def say(self, line: str) -> None:
        """On stderr, unless that is to be quiet."""
        self.view.say(line)

    def plan(self, summary: Document, plan: TopicPlan, choice: ApplyChoice) -> ExitCode:
        """Shows the plan; what was found decides the exit code."""
        if choice.is_made and plan.is_refused:
            self.say("Nothing was changed: fix the errors first.")
        listing = self._listing(summary, plan.findings, applied=False)
        code = replace(self.view, quiet=True).show(listing, plan.findings)
        self.view.say(*choice.advice(changes=not plan.change.is_empty and not plan.is_refused))
        return code

    def end(self, summary: Document, plan: TopicPlan, outcome: Outcome) -> ExitCode:
        """Shows what was done; what was found afterwards decides the exit code."""
        listing = self._listing(summary, [*outcome.findings, *plan.findings], applied=True)
        return replace(self.view, quiet=True).end(listing, outcome)

    def _listing(self, summary: Document, findings: Sequence[Finding], *, applied: bool) -> Listing:
        whole = {**summary, "applied": applied, "findings": len(findings)}
        return self.view.finding_listing(self.kind, self.source, findings, whole)


@dataclass(frozen=True, slots=True)
class Waiting:
    """How to wait for the effect of a change, and what to report meanwhile and afterwards."""

    patience: Patience
    counted: str
    """What is counted."""
    ends: Mapping[Seen, str]
    """What to report when the wait ends in time, by how it ends: with the topic's `{name}`, and the command for its
    `{status}`."""


def describe_change(change: ConfigChange) -> str:
    """`local.retention.ms: -2 -> 3600000, …`."""
    before = {name: one.value for name, one in change.before.items()}
    after = change.after()
    return ", ".join(f"{name}: {before.get(name, _UNSET)} -> {after[name]}" for name in change.changes)


def make(change: TopicChange, shown: Shown, waiting: Waiting | None) -> Outcome:
    """Makes a change, and waits for its effect if asked to. An error of the wait also says whether the change
    was made."""
    name, made = change.plan.change.topic.topic, "may be made"
    try:
        with critical_section():
            change.make()
            made = "is made"
            if waiting is None:
                mark_complete()
        shown.say(f"Topic {name} is changed.")
        return Outcome() if waiting is None else _waited(change, shown, waiting)
    except KeyboardInterrupt:
        hint = f"How far it is: {_status_of(name)}"
        message = f"Interrupted. The change of topic {name} {made} ({describe_change(change.plan.change)})."
        raise TieredctlError(ErrorCode.INTERRUPTED, message, hint=hint) from None
    except TieredctlError as error:
        if made != "is made":
            raise
        message = f"{error.message} The change of topic {name} {made} ({describe_change(change.plan.change)})."
        raise TieredctlError(error.code, message, hint=error.hint) from None


def _waited(change: TopicChange, shown: Shown, waiting: Waiting) -> Outcome:
    outcome = change.wait(waiting.patience, partial(note, waiting.counted))
    for finding in outcome.findings:
        shown.say(f"{finding.kind.severity.label}: {finding.message}")
    if outcome.seen is not None and outcome.seen in waiting.ends:
        name = change.plan.change.topic.topic
        shown.say(waiting.ends[outcome.seen].format(name=name, status=_status_of(name)))
    return outcome


def _status_of(topic: str) -> str:
    return next_command(pasteable("tieredctl topic status {topic} …", {"topic": topic}))
