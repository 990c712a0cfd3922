"""`tieredctl estimate …`: what something would take, before it is done."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Annotated

import typer

from tieredctl.cli.arguments import byte_count, topic_partition
from tieredctl.cli.options import BootstrapServer, CommandConfig, Output, Quiet
from tieredctl.cli.outcome import finding_documents, finish
from tieredctl.cli.output import Listing, OutputFormat, TableColumn
from tieredctl.cli.wiring import open_cluster, open_stream
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.ops.bootstrap_estimate import live_bootstrap, stated_bootstrap

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_WAY_COLUMNS = (
    TableColumn("START-AT", "way"),
    TableColumn("OFFSET", "startOffset"),
    TableColumn("BYTES", "bytes"),
    TableColumn("SECONDS", "seconds"),
    TableColumn("OF-EVERYTHING", "ratioToEverything"),
    TableColumn("OF-LOCAL", "ratioToLocal"),
    TableColumn("MEASURED-BY-THE-KIP", "measured"),
)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


@_commands.callback()
def verbs() -> None:
    """Keeps the verb's name in the line while there is one verb alone."""


@_commands.command("follower-bootstrap")
def follower_bootstrap(
    where: Annotated[
        str | None, typer.Argument(metavar="[TOPIC:PARTITION]", help="A live partition; else state the bytes.")
    ] = None,
    partition_bytes: Annotated[
        str | None, typer.Option(metavar="BYTES", help="The whole partition, in both tiers: 12TB, 500GiB.")
    ] = None,
    local_bytes: Annotated[str | None, typer.Option(metavar="BYTES", help="What is on its leader's disk.")] = None,
    pending_bytes: Annotated[
        str | None, typer.Option(metavar="BYTES", help="What of that is not in remote storage yet.")
    ] = None,
    throughput: Annotated[
        str | None, typer.Option(metavar="BYTES", help="How much is copied in a second, to estimate times.")
    ] = None,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
) -> ExitCode:
    """What a new follower copies, and for how long: everything, the leader's local log (KIP-405), or what is not yet in
    remote storage (KIP-1023). Beside it what the KIPs measured."""
    bytes_per_second = None if throughput is None else byte_count(throughput)
    if bytes_per_second == 0:
        raise TieredctlError("usage", "--throughput 0 never ends.")
    stated = [text for text in (partition_bytes, local_bytes, pending_bytes) if text is not None]
    if len(stated) != (3 if where is None else 0):
        message = "Name a partition, or state --partition-bytes, --local-bytes and --pending-bytes."
        raise TieredctlError("usage", message)
    findings: list[Finding] = []
    source: Mapping[str, object] = {"kind": "arguments"}
    if where is None:
        found = stated_bootstrap(*map(byte_count, stated))
    else:
        with closing(open_cluster(bootstrap_server, command_config)) as cluster:
            stream = open_stream(None, bootstrap_server, command_config, None, None)
            found, source = live_bootstrap(cluster, stream, *topic_partition(where)), stream.source.describe()
            findings = [finding for finding in stream.findings if finding.kind.incomplete]
    rows = found.rows(bytes_per_second)
    summary = {"items": len(rows), "bytesPerSecond": bytes_per_second, "findings": finding_documents(findings)}
    listing = Listing("FollowerBootstrap", source, rows, _WAY_COLUMNS, summary)
    return finish(listing, output, findings, quiet=quiet)
