"""`tieredctl verify` on a cluster:

    spark-submit --master … verify.py --log-dir DIR --store URL --level full --subset 3/30 --output URL

Driver and executors need tieredctl, tieredctl-spark and the layout's package: installed, or as archives given with
--py-files. The driver reads the metadata and lists the store; executors read the segments.

The output folder, in any file system that Spark reaches, gets `segments` and `findings` as Parquet, and
`summary.json`. A second run into the same folder reads only what the first did not, or what has changed since. Exit
codes are those of `tieredctl verify`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.kafka.local_logs import read_local_logs
from tieredctl.kafka.server_properties import stated_settings
from tieredctl.kafka.source import MetadataSource
from tieredctl.kafka.topics_by_id import TopicsById
from tieredctl.layouts.protocol import Layout
from tieredctl.layouts.registry import layout_in
from tieredctl.model.findings import exit_code_of
from tieredctl.ops.cluster.broker_settings import METADATA_CLASS
from tieredctl.ops.cluster.live_topics import TopicSources, read_topic_ids
from tieredctl.ops.cluster.metadata_manager import demand_topic_based, managers_of
from tieredctl.ops.cluster.topic_snapshot import read_topic_snapshot
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphan_removal.removed_keys import read_removed_keys
from tieredctl.ops.verification.partition_check import Clock
from tieredctl.ops.verification.report import DEFAULT_INDEX_INTERVAL_BYTES, Level
from tieredctl.ops.verification.verify import Subset, VerifyOptions, verify
from tieredctl.storage.protocol import ObjectStore
from tieredctl.storage.registry import open_store
from tieredctl_spark.engine import SparkEngine
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.finding_rows import FINDING_TYPE, finding_row
from tieredctl_spark.ledger import Ledger, ResumingEngine
from tieredctl_spark.metadata_sources import metadata_source
from tieredctl_spark.output_folder import OutputFolder
from tieredctl_spark.session import spark_session

_STUCK_AFTER_MS = 3_600_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job: its exit code. What went wrong is said on stderr, in a sentence."""
    try:
        return int(_run(_parser().parse_args(arguments)))
    except TieredctlError as error:
        return _failed(error)
    except KeyboardInterrupt:
        return _failed(TieredctlError(ErrorCode.INTERRUPTED, "Interrupted."))
    except OSError as error:
        where = error.filename or "input or output"
        return _failed(TieredctlError(ErrorCode.UNREADABLE, f"{error.strerror or error}: {where}."))


def _failed(error: TieredctlError) -> int:
    sys.stderr.write(f"{error.message}\n  {error.hint}\n")
    return int(error.exit_code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="verify.py", description="tieredctl verify on a Spark cluster.")
    add = parser.add_argument
    add("--log-dir", type=Path, action="append", default=[], help="a broker's log directory; repeat it for several")
    add("--bootstrap-server", help="a live cluster, as HOST:PORT")
    add("--command-config", type=Path, help="client properties, as Kafka's own tools take them")
    add("--export", type=Path, help="what `tieredctl metadata export` wrote")
    add("--store", required=True, help="the remote store, such as file:DIR")
    add("--store-option", action="append", default=[], type=_pair, metavar="NAME=VALUE", help="for the store")
    add("--layout", required=True, help="how keys map to segments: local, or a plugin's name")
    add("--layout-option", action="append", default=[], type=_pair, metavar="NAME=VALUE", help="for the layout")
    add("--live-topic-ids", type=Path, metavar="FILE", help="the ids of all topics, one a line")
    add("--kraft-snapshot", type=Path, metavar="FILE", help="which topics there were, for a cluster that is down")
    add("--level", type=Level, choices=[level.value for level in Level], default=Level.HEADERS, help="how deep to look")
    add("--subset", type=Subset.parse, default=Subset(), help="a share of the segments: 3/30 or 5%%")
    add("--index-interval", type=int, default=DEFAULT_INDEX_INTERVAL_BYTES, help="index.interval.bytes of the topics")
    add("--output", required=True, metavar="URL", help="the folder for the results, by a path of Spark's")
    return parser


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _run(options: argparse.Namespace) -> ExitCode:
    store = open_store(options.store, dict(options.store_option))
    layout = layout_in(store, options.layout, dict(options.layout_option))
    # Before the metadata: a running broker trims its local log only behind what it has written there.
    local_logs = read_local_logs(options.log_dir)
    _demand_topic_based_metadata(options)
    how = VerifyOptions(
        level=options.level,
        clock=Clock(time.time_ns() // 1_000_000, _STUCK_AFTER_MS),
        subset=options.subset,
        index_interval_bytes=options.index_interval,
        local_logs=local_logs,
    )
    named = (options.log_dir, options.bootstrap_server, options.command_config, options.export)
    with _topic_sources(options) as topics, spark_session({}) as session, spark_failures():
        output = OutputFolder(session, options.output)
        how = replace(how, topic_sources=topics, read_removed=partial(read_removed_keys, store))
        return _verify(partial(metadata_source, *named), store, layout, how, output)


def _demand_topic_based_metadata(options: argparse.Namespace) -> None:
    """As the command line's `verify`: what a topic lacks that is not the cluster's metadata is not missing."""
    demand_topic_based(stated_settings(options.log_dir, METADATA_CLASS))
    if options.bootstrap_server is not None:
        with closing(LiveCluster(options.bootstrap_server, options.command_config)) as cluster:
            demand_topic_based(managers_of(cluster))


@contextmanager
def _topic_sources(options: argparse.Namespace) -> Iterator[TopicSources]:
    """Where it is said which topics there are, as for the command line's `verify`."""
    if options.live_topic_ids is not None:
        yield TopicSources(topic_ids=read_topic_ids(options.live_topic_ids))
    elif options.kraft_snapshot is not None:
        yield TopicSources(snapshot=read_topic_snapshot(options.kraft_snapshot))
    elif options.bootstrap_server is not None:
        with closing(TopicsById(options.bootstrap_server, options.command_config)) as cluster:
            yield TopicSources(cluster=cluster)
    else:
        yield TopicSources()


def _verify(
    read: Callable[[], MetadataSource], store: ObjectStore, layout: Layout, how: VerifyOptions, output: OutputFolder
) -> ExitCode:
    engine = ResumingEngine(SparkEngine({}), Ledger(output))
    source = read()
    result = verify(EventStream(source), store, layout, engine, how, read_again=lambda: EventStream(read()))
    findings = [finding_row(finding) for finding in result.findings]
    output.write_table("findings", pa.Table.from_pylist(findings, pa.schema(list(FINDING_TYPE))))
    code = exit_code_of(result.findings)
    described = source.describe() | {"store": store.url, "layout": layout.name, "engine": "spark"}
    summary = json.dumps(_document(described, result.summary() | {"resumed": engine.resumed, "exitCode": int(code)}))
    output.write_text("summary.json", summary + "\n")
    sys.stdout.write(summary + "\n")
    return code


def _document(source: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "Verification", "apiVersion": "tieredctl/v1", "source": dict(source), "summary": dict(summary)}


if __name__ == "__main__":
    sys.exit(main())
