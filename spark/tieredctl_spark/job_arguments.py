"""What jobs have in common: where things are, from arguments spelled like the command line's; and how a job ends."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, system_error
from tieredctl.model.printable import printable
from tieredctl.ops.metadata.as_of import AsOf
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.layout import AUTO
from tieredctl.process.crash_file import crash_text, fault_error
from tieredctl.process.run_metrics import RunMetrics, run_metrics
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, PluginSource, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace
from tieredctl_spark.failures import error_stream


def run_job(
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], ExitCode],
    arguments: Sequence[str] | None,
) -> int:
    """Runs a job, and returns its exit code, which its metrics have too. A failure is reported on stderr, in a
    sentence. SIGTERM and SIGHUP interrupt it as Ctrl-C does."""
    metrics = RunMetrics()
    asked = run_metrics.set(metrics)
    try:
        with error_stream() as stream, redirect_stderr(stream), _interrupted_by_all():
            try:
                options = parser.parse_args(arguments)
                metrics.ask(options.metrics_file, parser.prog.removesuffix(".py"))
            except TieredctlError as error:
                return _failed(error)
            words = [parser.prog, *(sys.argv[1:] if arguments is None else arguments)]
            return _ended(metrics, _exit_code(run, options, words))
    finally:
        run_metrics.reset(asked)


def _ended(metrics: RunMetrics, code: int) -> int:
    try:
        metrics.write(code)
    except TieredctlError as error:
        return _failed(error)
    return code


def _exit_code(run: Callable[[argparse.Namespace], ExitCode], options: argparse.Namespace, words: Sequence[str]) -> int:
    try:
        return int(run(options))
    except TieredctlError as error:
        return _failed(error)
    except KeyboardInterrupt:
        return _failed(TieredctlError(ErrorCode.INTERRUPTED, "Interrupted."))
    except (OSError, MemoryError) as error:
        return _failed(system_error(error))
    except Exception as fault:  # noqa: BLE001 - the last resort: it is reported, and is a failure
        return _at_fault(fault, words)


@contextmanager
def _interrupted_by_all() -> Iterator[None]:
    """Has the signals that would end the process without a word interrupt it, but for what nohup ignores."""
    numbers: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        numbers = ()
    defaults = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in defaults:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in defaults:
            signal.signal(number, signal.SIG_DFL)


def job_parser(name: str, description: str) -> argparse.ArgumentParser:
    """With the arguments for metadata, store, topics, output and metrics."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    add = parser.add_argument
    add("--log-dir", type=Path, action="append", default=[], help="a broker's log directory; repeat it for several")
    add("--bootstrap-server", help="a live cluster, as HOST:PORT")
    add("--command-config", type=Path, help="client properties, as Kafka's own tools take them")
    add("--export", type=Path, help="a file that `tieredctl metadata export` wrote")
    add("--metadata-source", metavar="NAME:LOCATION", help="metadata that a plugin reads")
    add("--metadata-source-option", **PAIRS, help="for --metadata-source")
    add("--store", required=True, help="the remote store, such as file:DIR")
    add("--store-option", **PAIRS, help="for the store")
    add("--layout", default=AUTO, help="how keys map to segments: local, a plugin's name, or auto to look at the keys")
    add("--layout-option", **PAIRS, help="for the layout")
    add("--live-topic-ids", type=Path, metavar="FILE", help="the ids of all topics, one per line")
    add("--kraft-snapshot", type=Path, metavar="FILE", help="the topics of a cluster that is down")
    add("--topic", action="append", help="only this topic; repeat it for several")
    add("--topic-id", action="append", help="only the topic with this id; repeat it for several")
    add("--partition", type=int32, action="append", metavar="NUMBER", help="only this partition; repeat it for several")
    add("--output", required=True, metavar="URL", help="the folder for the results, as a path that Spark can write")
    add("--metrics-file", type=Path, metavar="FILE", help="write metrics to this file, for Prometheus' node exporter")
    return parser


def places_of(options: argparse.Namespace, as_of: AsOf | None = None) -> tuple[MetadataPlace, StorePlace, TopicsPlace]:
    """Where the arguments say that things are; metadata up to a point in the past, if there is one."""
    server, config = options.bootstrap_server, options.command_config
    cluster = None if server is None else ClusterPlace(server, config)
    plugin = PluginSource.given(options.metadata_source, dict(options.metadata_source_option))
    metadata = MetadataPlace(tuple(options.log_dir), cluster, options.export, as_of, plugin)
    store = StorePlace(options.store, dict(options.store_option), options.layout, dict(options.layout_option))
    return metadata, store, TopicsPlace.beside(metadata, options.live_topic_ids, options.kraft_snapshot)


def selection_of(options: argparse.Namespace) -> Selection:
    """The partitions that the arguments mean."""
    return Selection.given(options.topic, options.topic_id, options.partition)


def int32(text: str) -> int:
    """A number that Kafka has in 32 bits, 0 or more."""
    value = int(text)
    if not 0 <= value < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 2147483647")
    return value


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


PAIRS: Any = {"action": "append", "default": [], "type": _pair, "metavar": "NAME=VALUE"}
"""The arguments of an option that is repeated for several settings."""


def _at_fault(fault: Exception, words: Sequence[str]) -> int:
    """Says what is unforeseen with all that a report needs: a driver's log is often all that is left of it."""
    sys.stderr.write(crash_text(fault, words))
    return _failed(fault_error(fault, "Please report it with the lines above, which have no secrets."))


def _failed(error: TieredctlError) -> int:
    sys.stderr.write(f"{printable(error.sentence)}\n")
    if error.hint:
        sys.stderr.write(f"  {printable(error.hint)}\n")
    return int(error.exit_code)
