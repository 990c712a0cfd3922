"""`tieredctl estimate …`: what something would take, before it is done."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Annotated

import typer

from tieredctl.cli.arguments import byte_count, now_ms, topic_partition
from tieredctl.cli.options import BootstrapServer, CommandConfig, Now, Output, Partition, Quiet
from tieredctl.cli.outcome import finding_documents, finish, say
from tieredctl.cli.output import Listing, OutputFormat, TableColumn
from tieredctl.cli.wiring import open_cluster, open_stream
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.ops.bootstrap_estimate import live_bootstrap, stated_bootstrap
from tieredctl.ops.retention_estimate import RetentionChange, retention_estimate

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
_EXPIRED_COLUMNS = (
    TableColumn("PARTITION", "partition"),
    TableColumn("START", "startOffset"),
    TableColumn("END", "endOffset"),
    TableColumn("BYTES", "segmentSizeInBytes"),
    TableColumn("BREACH", "breach"),
    TableColumn("SEGMENT-ID", "segmentId"),
)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


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


@_commands.command("retention")
def retention(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    partition: Partition = None,
    retention_ms: Annotated[
        int | None, typer.Option(metavar="MS", help="retention.ms, -1 for no limit; as it is, if not given.", min=-1)
    ] = None,
    retention_bytes: Annotated[
        int | None, typer.Option(metavar="BYTES", help="retention.bytes, -1 for no limit; likewise.", min=-1)
    ] = None,
    before_offset: Annotated[
        int | None, typer.Option(metavar="OFFSET", help="Let the log begin here, as DeleteRecords does.", min=0)
    ] = None,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    now: Now = None,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
) -> ExitCode:
    """Which remote segments would be deleted if retention were changed, or records deleted, by Kafka's own rule.

    Changes nothing. Sizes on the leaders' disks, which count towards retention.bytes, are estimated.
    """
    change = RetentionChange(retention_ms, retention_bytes, before_offset)
    with closing(open_cluster(bootstrap_server, command_config)) as cluster:
        stream = open_stream(None, bootstrap_server, command_config, None, None)
        found = retention_estimate(cluster, stream, topic, partition, change, now_ms(now))
    findings = [finding for finding in stream.findings if finding.kind.incomplete]
    summary = found.summary()
    listing = Listing("RetentionEstimate", stream.source.describe(), found.rows(), _EXPIRED_COLUMNS, summary)
    if not quiet:
        say(f"{summary['segments']} remote segments, {summary['bytes']} bytes, would be deleted of {topic}.")
    return finish(listing, output, findings, quiet=quiet)
