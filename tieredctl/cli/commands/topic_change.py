"""What `topic enable` and `topic disable` share: the plan as it is shown, the confirmation, and the wait afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tieredctl.cli.findings_table import FINDING_FIELDS
from tieredctl.cli.outcome import finding_documents, finish, say
from tieredctl.cli.output import Listing, OutputFormat, TableColumn, printable
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.kafka.cluster import Cluster
from tieredctl.model.findings import Finding
from tieredctl.ops.tiering.config_change import ConfigChange, make_change

_COLUMNS = (
    TableColumn("SEVERITY", "severity"),
    TableColumn("CODE", "code"),
    TableColumn("SUBJECT", "subject"),
    TableColumn("MESSAGE", "message"),
    TableColumn("REMEDY", "remedy", wide=True),
)
_UNSET = "(not set)"

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")]
Apply = Annotated[bool, typer.Option("--apply", help="Do it; else it is only shown what would be done.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait until the change takes effect.")]
Timeout = Annotated[str, typer.Option(metavar="DURATION", help="For how long to wait for its effect, at most.")]


@dataclass(frozen=True, slots=True)
class Shown:
    """How a command that changes a topic shows what it has to say."""

    kind: str
    source: Mapping[str, Any]
    output: OutputFormat
    quiet: bool
    metrics_file: Path | None

    def say(self, line: str) -> None:
        """On stderr, unless that is to be quiet."""
        if not self.quiet:
            say(printable(line))

    def end(
        self,
        summary: Mapping[str, Any],
        found: Sequence[Finding],
        *,
        applied: bool,
        afterwards: Sequence[Finding] = (),
    ) -> ExitCode:
        """Shows the plan, or what was done. Where nothing was done, what was found decides the exit code; where it was,
        what was found afterwards."""
        items = finding_documents([*afterwards, *found])
        whole = {**summary, "applied": applied, "findings": len(items)}
        listing = Listing(self.kind, self.source, items, _COLUMNS, whole, FINDING_FIELDS)
        deciding = afterwards if applied else found
        return finish(listing, self.output, deciding, quiet=True, metrics_file=self.metrics_file)


def describe_change(change: ConfigChange) -> str:
    """`local.retention.ms: -2 -> 3600000, …`."""
    before = {name: one.value for name, one in change.before.items()}
    after = change.after()
    return ", ".join(f"{name}: {before.get(name, _UNSET)} -> {after[name]}" for name in change.changes)


@contextmanager
def changed(cluster: Cluster, change: ConfigChange, shown: Shown) -> Iterator[None]:
    """Makes a change. Within it, whatever ends the wait for its effect is told together with this: that it is made."""
    name, made = change.topic.topic, "may be made"
    try:
        make_change(cluster, change)
        made = "is made"
        shown.say(f"Topic {name} is changed.")
        yield
    except KeyboardInterrupt:
        hint = f"`tieredctl topic status {name}` shows how far it is."
        message = f"Interrupted. The change of topic {name} {made} ({describe_change(change)})."
        raise TieredctlError(ErrorCode.INTERRUPTED, message, hint=hint) from None
    except TieredctlError as error:
        if made != "is made":
            raise
        message = f"{error.message} The change of topic {name} {made} ({describe_change(change)})."
        raise TieredctlError(error.code, message, hint=error.hint) from None
