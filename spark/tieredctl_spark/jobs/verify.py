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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.clock import Clock
from tieredctl.model.findings import exit_code_of
from tieredctl.ops.verification.options import Subset, VerifyOptions
from tieredctl.ops.verification.report import DEFAULT_INDEX_INTERVAL_BYTES, Level
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, PluginSource, StorePlace, TopicsPlace
from tieredctl.wiring.verify import Verified, verify
from tieredctl_spark.engine import SparkEngine
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.finding_rows import FINDING_TYPE, finding_row
from tieredctl_spark.ledger import Ledger, ResumingEngine
from tieredctl_spark.output_folder import OutputFolder
from tieredctl_spark.session import spark_session

_STUCK_AFTER_MS = 3_600_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job, and returns its exit code. A failure is reported on stderr, in a sentence."""
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
    add("--export", type=Path, help="a file that `tieredctl metadata export` wrote")
    add("--metadata-source", metavar="NAME:LOCATION", help="metadata that a plugin reads")
    add("--metadata-source-option", **_PAIRS, help="for --metadata-source")
    add("--store", required=True, help="the remote store, such as file:DIR")
    add("--store-option", **_PAIRS, help="for the store")
    add("--layout", required=True, help="how keys map to segments: local, or a plugin's name")
    add("--layout-option", **_PAIRS, help="for the layout")
    add("--live-topic-ids", type=Path, metavar="FILE", help="the ids of all topics, one per line")
    add("--kraft-snapshot", type=Path, metavar="FILE", help="the topics of a cluster that is down")
    add(
        "--level",
        type=Level,
        choices=[level.value for level in Level],
        default=Level.HEADERS,
        help="how thoroughly to check",
    )
    add("--subset", type=Subset.parse, default=Subset(), help="a share of the segments: 3/30 or 5%%")
    add("--index-interval", type=int, default=DEFAULT_INDEX_INTERVAL_BYTES, help="index.interval.bytes of the topics")
    add("--output", required=True, metavar="URL", help="the folder for the results, as a path that Spark can write")
    return parser


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


_PAIRS: Any = {"action": "append", "default": [], "type": _pair, "metavar": "NAME=VALUE"}


def _run(options: argparse.Namespace) -> ExitCode:
    metadata, store, topics = _places(options)
    how = VerifyOptions(
        level=options.level,
        clock=Clock(time.time_ns() // 1_000_000, _STUCK_AFTER_MS),
        subset=options.subset,
        index_interval_bytes=options.index_interval,
    )
    with ExitStack() as stack:
        started = _Started(stack, options.output)
        verified = verify(metadata, store, how, topics=topics, make_engine=started.engine)
        return _write(verified, started)


def _places(options: argparse.Namespace) -> tuple[MetadataPlace, StorePlace, TopicsPlace]:
    """Where the arguments say that things are."""
    server, config = options.bootstrap_server, options.command_config
    cluster = None if server is None else ClusterPlace(server, config)
    plugin = PluginSource.given(options.metadata_source, dict(options.metadata_source_option))
    metadata = MetadataPlace(tuple(options.log_dir), cluster, options.export, plugin=plugin)
    store = StorePlace(options.store, dict(options.store_option), options.layout, dict(options.layout_option))
    return metadata, store, TopicsPlace.beside(metadata, options.live_topic_ids, options.kraft_snapshot)


class _Started:
    """A Spark session, started once there is work for it; and what is kept of it."""

    def __init__(self, stack: ExitStack, output_url: str) -> None:
        self._stack = stack
        self._output_url = output_url
        self.output: OutputFolder
        self.resuming: ResumingEngine

    def engine(self) -> ResumingEngine:
        session = self._stack.enter_context(spark_session({}))
        self._stack.enter_context(spark_failures())
        self.output = OutputFolder(session, self._output_url)
        self.resuming = ResumingEngine(SparkEngine({}), Ledger(self.output))
        return self.resuming


def _write(verified: Verified, started: _Started) -> ExitCode:
    result, output = verified.result, started.output
    findings = [finding_row(finding) for finding in result.findings]
    output.write_table("findings", pa.Table.from_pylist(findings, pa.schema(list(FINDING_TYPE))))
    code = exit_code_of(result.findings)
    counts = result.summary() | {"resumed": started.resuming.resumed, "exitCode": int(code)}
    summary = json.dumps(_document(verified.source | {"engine": "spark"}, counts))
    output.write_text("summary.json", summary + "\n")
    sys.stdout.write(summary + "\n")
    return code


def _document(source: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "Verification", "apiVersion": "tieredctl/v1", "source": dict(source), "summary": dict(summary)}


if __name__ == "__main__":
    sys.exit(main())
