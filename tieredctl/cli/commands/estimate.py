"""`tieredctl estimate …`: what something would take, before it is done."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from tieredctl.cli.arguments import GREATEST_INT64, given_path, now_ms, topic_partition
from tieredctl.cli.context_in_use import Role
from tieredctl.cli.options import Now, Output, Partitions, TopicIds, Topics
from tieredctl.cli.outcome import finding_documents, finish, say
from tieredctl.cli.output import OutputFormat
from tieredctl.cli.places import ClusterOptions, MetadataOptions, RemoteOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import Talk
from tieredctl.config.file import price_hint, storage_price
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.list_prices import AS_OF, list_price
from tieredctl.model.prices import StoragePrice
from tieredctl.model.quantities import byte_count, size_text
from tieredctl.ops.estimates.bootstrap import BootstrapRow, live_bootstrap, stated_bootstrap
from tieredctl.ops.estimates.cost import TopicCost, cost_estimate
from tieredctl.ops.estimates.local_retention import ExpiredRow
from tieredctl.ops.estimates.metadata_growth import BrokerMemory, read_metadata, stated_metadata
from tieredctl.ops.estimates.retention import RetentionChange, retention_estimate
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.wiring.kept_versions import kept_versions_of
from tieredctl.wiring.metadata import demand_known
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.timelines import local_replicas

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_GROWTH_SENTENCE = "{eventsPerDay} events, {sizePerDay} a day on average; {deadRatio:.0%} of all events are dead"


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


@_commands.command("follower-bootstrap")
def follower_bootstrap(
    *,
    where: Annotated[
        str | None, typer.Argument(metavar="[TOPIC:PARTITION]", help="A live partition; without it, state the bytes.")
    ] = None,
    partition_bytes: Annotated[
        str | None, typer.Option(metavar="BYTES", help="The partition's size, in both tiers: 12TB, 500GiB.")
    ] = None,
    local_bytes: Annotated[str | None, typer.Option(metavar="BYTES", help="The size on its leader's disk.")] = None,
    pending_bytes: Annotated[
        str | None, typer.Option(metavar="BYTES", help="How much of that is not in remote storage yet.")
    ] = None,
    throughput: Annotated[
        str | None, typer.Option(metavar="BYTES", help="Bytes copied per second, to estimate times.")
    ] = None,
    cluster_options: ClusterOptions,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
) -> ExitCode:
    """Estimate what a new follower copies, and how long that takes: everything, the leader's local log (KIP-405), or
    what is not yet in remote storage (KIP-1023). Shows what the KIPs measured, too.

    For example: tieredctl estimate follower-bootstrap orders:0 --bootstrap-server broker:9092
    """
    bytes_per_second = None if throughput is None else byte_count(throughput)
    if bytes_per_second == 0:
        raise TieredctlError(ErrorCode.USAGE, "--throughput 0 never ends.")
    stated = [text for text in (partition_bytes, local_bytes, pending_bytes) if text is not None]
    if len(stated) != (3 if where is None else 0):
        message = "Name a partition, or state --partition-bytes, --local-bytes and --pending-bytes."
        raise TieredctlError(ErrorCode.USAGE, message)
    findings: list[Finding] = []
    source: Mapping[str, object] = {"kind": "arguments"}
    if where is None:
        estimate = stated_bootstrap(*map(byte_count, stated))
    else:
        place = cluster_options.place()
        with place.open() as cluster, MetadataPlace(cluster=place).open() as stream:
            estimate, source = live_bootstrap(cluster, stream, *topic_partition(where)), stream.source.describe()
            findings = _doubts(stream)
    rows = estimate.rows(bytes_per_second)
    summary = {"items": len(rows), "bytesPerSecond": bytes_per_second, "findings": finding_documents(findings)}
    listing = result_listing("FollowerBootstrap", source, BootstrapRow, rows, summary)
    return finish(listing, output, findings, quiet=talk.quiet)


@_commands.command("retention")
def retention(
    *,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    partition: Partitions = None,
    retention_ms: Annotated[
        int | None, typer.Option(metavar="MS", help="retention.ms, -1 for no limit; unchanged by default.", min=-1)
    ] = None,
    retention_bytes: Annotated[
        int | None,
        typer.Option(metavar="BYTES", help="retention.bytes, -1 for no limit; unchanged by default.", min=-1),
    ] = None,
    before_offset: Annotated[
        int | None, typer.Option(metavar="OFFSET", help="Move the log start here, as DeleteRecords does.", min=0)
    ] = None,
    local_retention_ms: Annotated[
        int | None,
        typer.Option(
            metavar="MS", help="local.retention.ms, -2 for the value of retention.ms; unchanged by default.", min=-2
        ),
    ] = None,
    local_retention_bytes: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            help="local.retention.bytes, -2 for the value of retention.bytes; unchanged by default.",
            min=-2,
        ),
    ] = None,
    log_dir: Annotated[
        list[Path] | None,
        typer.Option(
            "--log-dir",
            metavar="DIR",
            parser=given_path,
            help="A broker's log directory, to look at its segments; without it, the leader is assumed to have those "
            "that it copied; repeat it for several.",
        ),
    ] = None,
    cluster_options: ClusterOptions,
    now: Now = None,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
) -> ExitCode:
    """Show which segments would be deleted, by Kafka's own rules, if retention changed or records were deleted: remote
    ones, and with --local-retention-* or --log-dir those on disks that are in remote storage.

    Changes nothing. Sizes on the leaders' disks, which count towards retention.bytes, are estimated.

    For example: tieredctl estimate retention orders --retention-ms 604800000 --bootstrap-server broker:9092
    """
    change = RetentionChange(retention_ms, retention_bytes, before_offset, local_retention_ms, local_retention_bytes)
    replicas = local_replicas(log_dir)
    place = cluster_options.place()
    with place.open() as cluster, MetadataPlace(cluster=place).open() as stream:
        estimate = retention_estimate(cluster, stream, topic, partition or (), change, now_ms(now), replicas=replicas)
    findings = _doubts(stream)
    summary = estimate.summary()
    source = stream.source.describe()
    listing = result_listing("RetentionEstimate", source, ExpiredRow, estimate.rows(), summary)
    if not talk.quiet:
        amount = f"{counted(summary['segments'], 'remote segment')}, {estimate.size}"
        as_is = " with its present retention: try another with --retention-ms, --retention-bytes or --before-offset"
        say(f"Of {topic}, {amount}, would be deleted{as_is if change == RetentionChange() else ''}.")
        if "localBytes" in summary:
            say(
                f"{counted(summary['localSegments'], 'local segment')}, {estimate.local_size}, "
                "would be deleted; "
                f"{estimate.local_size_once_tiered} more is due once it is in remote storage."
            )
    return finish(listing, output, findings, quiet=talk.quiet)


@_commands.command("metadata")
def metadata(
    *,
    segments: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="The number of segments, instead of reading it from metadata.",
            min=0,
            max=GREATEST_INT64,
        ),
        Role.INSTEAD,
    ] = None,
    metadata_options: MetadataOptions,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
) -> ExitCode:
    """Estimate how much of each broker's memory remote log metadata takes, by KIP-405 and as measured, how its topic
    grows, and how long its replay takes after a restart.

    A broker keeps every segment of the partitions that it leads or follows; --log-dir and --export do not show which
    these are, so the row is for a broker that has them all.

    For example: tieredctl estimate metadata --bootstrap-server broker:9092
    """
    if segments is not None:
        if metadata_options.are_given:
            raise TieredctlError(ErrorCode.USAGE, "--segments replaces a source of metadata.")
        estimate, findings = stated_metadata(segments), list[Finding]()
        source: Mapping[str, object] = {"kind": "arguments"}
    else:
        place = metadata_options.place()
        with place.open() as stream, nullcontext() if place.cluster is None else place.cluster.open() as cluster:
            estimate = read_metadata(stream, cluster)
        source, findings = stream.source.describe(), stream.findings
    grows = estimate.summary.get("eventsPerDay") is not None
    sentences = [_growth(estimate.summary)] if grows else []
    listing = result_listing("MetadataEstimate", source, BrokerMemory, estimate.rows, estimate.summary)
    return finish(listing, output, findings, quiet=talk.quiet, sentences=sentences)


def _growth(summary: Mapping[str, Any]) -> str:
    return _GROWTH_SENTENCE.format_map({**summary, "sizePerDay": size_text(summary["bytesPerDay"])})


@_commands.command("cost")
def cost(
    *,
    remote_options: RemoteOptions,
    topic: Topics = None,
    topic_id: TopicIds = None,
    reads_per_day: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Read requests per day; the metadata does not have them.", min=0, max=GREATEST_INT64
        ),
    ] = None,
    price: Annotated[
        float | None,
        typer.Option(
            metavar="AMOUNT", help="What a GiB costs a month, instead of the configured or listed price.", min=0
        ),
    ] = None,
    metadata_options: MetadataOptions,
    now: Now = None,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
) -> ExitCode:
    """Estimate what storage and copy requests cost a month, by topic.

    Prices are those of the configuration; without one, the list prices of S3, Google Cloud Storage and Azure, with
    their date. Bytes are those of the logs, before the layout compresses them. What the store keeps of deleted objects
    is included, by its listing of versions; deletions and multipart uploads are not.

    For example: tieredctl estimate cost --bootstrap-server broker:9092
    """
    remote = remote_options.place()
    opened, chosen = remote.open()
    known_price, price_of = _price(remote, opened.url, price)
    place, selection = metadata_options.place(), Selection.given(topic, topic_id)
    with place.open() as stream:
        kept = kept_versions_of(remote, opened, chosen, selection, known_price)
        estimate = cost_estimate(
            *(stream, selection, chosen, known_price, now_ms(now)), kept=kept, reads_per_day=reads_per_day
        )
        estimate.summary["priceOf"] = price_of
        demand_known(place, stream, selection)
        sentences = (
            [] if price_of is None else [f"By the list price of {price_of}: yours may differ (--price, `prices`)"]
        )
        sentences += [f"Not included: {reason}" for reason in estimate.summary["notKnown"]]
        sentences.append(f"{estimate.summary['cost']} {estimate.summary['currency']} a month")
        source = stream.source.describe()
        listing = result_listing("CostEstimate", source, TopicCost, estimate.rows, estimate.summary)
        findings = _doubts(stream)
        return finish(listing, output, findings, quiet=talk.quiet, sentences=sentences)


def _price(store: StorePlace, url: str, given: float | None) -> tuple[StoragePrice, str | None]:
    """The price of the configuration or the list, where `given` replaces that of storing; and what a list price is of.
    Raises TieredctlError for a store without any."""
    if given is not None and not isfinite(given):
        raise TieredctlError(ErrorCode.USAGE, f"--price: {given} is not a price.")
    price, price_of = storage_price(url), None
    if price is None and (listed := list_price(url)) is not None and store.is_proven():
        price, price_of = listed.price, f"{'' if given is None else 'requests to '}{listed.of}, {AS_OF}"
    if price is None and given is None:
        message = f"The configuration has no price for {url}."
        raise TieredctlError(ErrorCode.USAGE, message, hint=f"Give --price. {price_hint(url)}")
    price = price or StoragePrice(0.0, "USD")
    return (price if given is None else price._replace(per_gib_month=given, class_prices={})), price_of


def _doubts(stream: EventStream) -> list[Finding]:
    """What makes an estimate incomplete, or the least there is."""
    return [one for one in stream.findings if one.kind.incomplete or one.code is FindingCode.SEGMENT_SIZE_UNKNOWN]
