"""Measures, prints a table, writes build/bench.json. `python -m benchmarks [SUITE …]`; all of SUITES without."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.coordinator import BATCHES, coordinator_rows
from benchmarks.list_bucket import LISTED_BUCKET, fill_bucket
from benchmarks.measure import REPETITIONS, Contender, python, race, tieredctl
from benchmarks.records import records_rows
from benchmarks.remote_segment import remote_segments
from benchmarks.replay import replay_rows
from benchmarks.results import Row, compared, table, within, write_json
from tests.rigs.maven import KafkaJars, java_command, kafka_jars
from tests.rigs.metadata_log_generator import generate_metadata_log
from tests.rigs.metadata_snapshot_generator import generate_snapshot
from tests.rigs.object_servers import ACCESS_KEY, SECRET_KEY, versitygw
from tests.rigs.segment_generator import generate_segment
from tests.rigs.tools import dump_log_class

KAFKA_VERSION = "4.3.1"
EVENTS = 1_100_000
MANY_EVENTS = 10_000_000
SNAPSHOT_RECORDS = 1_000_000
SEGMENT_BYTES = 1 << 30
SEGMENTS = 6
JSON_FILE = Path(__file__).parents[1] / "build" / "bench.json"
_ORPHANS_SCRIPT = Path(__file__).with_name("orphans.sh")
_CAPTURE = Path(__file__).parents[1] / "tests" / "captures" / "kafka-4.3.1.tar.gz"


def kafka_tool(jars: KafkaJars, class_name: str, *words: str) -> list[str]:
    """A tool as Kafka's own scripts start it (kafka-run-class.sh's heap and options)."""
    options = ("-Xmx256M", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    return [java_command(), *options, quiet, "-cp", jars.class_path, class_name, *words]


def decode(folder: Path, jars: KafkaJars) -> list[Row]:
    """A log of a million events, one per batch, formatted into /dev/null."""
    generated = generate_metadata_log(folder / "events", EVENTS)
    log_dir = generated.log_file.parent.parent
    dump = kafka_tool(jars, dump_log_class(jars), "--remote-log-metadata-decoder", "--files", str(generated.log_file))
    contenders = [
        Contender("kafka-dump-log --remote-log-metadata-decoder", dump),
        Contender("tieredctl metadata format", tieredctl("metadata", "format", "--log-dir", log_dir)),
        Contender("column decoding, CRCs checked", python("decode_columns", log_dir)),
    ]
    race(*contenders)
    notes = {
        contender.name: f"{EVENTS / contender.median('cpu') / 1e6:.2f} M events a second of CPU, "
        f"{contender.median('megabytes'):.0f} MB"
        for contender in contenders
    }
    goals = {contenders[1].name: 5.0}
    return compared(f"{EVENTS:,} events, one per batch: user and system time", contenders, "cpu", "s", goals, notes)


def verify(folder: Path, jars: KafkaJars) -> list[Row]:
    """A few segments of 1 GiB, from the page cache."""
    rows = []
    for batch_bytes, goal in ((16_384, 0.6), (500, None)):
        segment = generate_segment(folder / f"segment-{batch_bytes}", SEGMENT_BYTES, batch_bytes=batch_bytes)
        remote = remote_segments(folder / f"remote-{batch_bytes}", [segment] * SEGMENTS)
        words = ("--level", "full", "--store", f"file:{remote.store}", "--layout", "local")
        dump = kafka_tool(jars, dump_log_class(jars), "--files", str(segment.log))
        contenders = [
            Contender("reading and CRC-32C alone", python("read_and_checksum", *remote.logs)),
            Contender("tieredctl verify --level full", tieredctl("verify", "--log-dir", remote.log_dir, *words)),
        ]
        dumped = Contender("kafka-dump-log, one of the segments", dump)
        race(*contenders)
        race(dumped, repetitions=1)
        notes = {contender.name: _rate(contender, remote.bytes) for contender in contenders}
        goals = {} if goal is None else {contenders[1].name: goal}
        title = f"{SEGMENTS} segments of 1 GiB, batches of {batch_bytes} bytes: user and system time"
        rows += compared(title, contenders, "cpu", "s", goals, notes)
        title = f"kafka-dump-log on one segment, batches of {batch_bytes} bytes: user and system time"
        rows += compared(title, [dumped], "cpu", "s", {}, {dumped.name: _rate(dumped, remote.bytes // SEGMENTS)})
        shutil.rmtree(folder / f"segment-{batch_bytes}")
        shutil.rmtree(folder / f"remote-{batch_bytes}")
    return rows


def _rate(contender: Contender, size: int) -> str:
    gigabytes = size / contender.median("cpu") / 1e9
    return f"{gigabytes:.2f} GB a second of CPU, {contender.median('megabytes'):.0f} MB"


def start(folder: Path, jars: KafkaJars) -> list[Row]:
    """Short commands, whose time is start-up."""
    shutil.unpack_archive(_CAPTURE, folder)
    capture = folder / "kafka-4.3.1"
    log_dir, store = capture / "data", f"file:{capture / 'remote' / 'kafka-tiered-storage'}"
    topics = "org.apache.kafka.tools.TopicCommand"
    version = [
        Contender("kafka-topics --version", kafka_tool(jars, topics, "--version")),
        Contender("tieredctl --version", tieredctl("--version")),
        Contender(
            "tieredctl metadata lookup",
            tieredctl("metadata", "lookup", "orders7:0", "--epoch", "0", "--offset", "40", "--log-dir", log_dir),
        ),
        Contender("tieredctl explain", tieredctl("explain", "orders7:0@40", "--log-dir", log_dir)),
        Contender("tieredctl status", tieredctl("status", "--log-dir", log_dir)),
        Contender(
            "tieredctl verify --level full",
            tieredctl("verify", "--level", "full", "--log-dir", log_dir, "--store", store, "--layout", "local"),
        ),
    ]
    usage = [
        Contender("kafka-topics --help", kafka_tool(jars, topics, "--help"), exit_code=1),
        Contender("tieredctl --help", tieredctl("--help")),
    ]
    race(*version, *usage, repetitions=2 * REPETITIONS + 1)
    goals = {version[1].name: 3.0, version[2].name: 1.0, usage[1].name: 1.0}
    notes = {contender.name: f"{contender.median('cpu'):.2f} s of CPU" for contender in version}
    return [
        *compared("Start-up: wall-clock time against --version", version, "wall", "s", goals, notes),
        *compared("Start-up: wall-clock time against --help", usage, "wall", "s", goals, {}),
    ]


def memory(folder: Path, _: KafkaJars) -> list[Row]:
    """Ten million events, formatted."""
    generated = generate_metadata_log(folder / "many-events", MANY_EVENTS)
    contender = Contender(
        "tieredctl metadata format", tieredctl("metadata", "format", "--log-dir", generated.log_file.parent.parent)
    )
    race(contender, repetitions=1)
    title = f"{MANY_EVENTS:,} events formatted: peak memory, against 300 MB"
    return [within(title, contender, "megabytes", "MB", 300, f"{contender.median('wall'):.1f} s")]


def orphans(folder: Path, _: KafkaJars) -> list[Row]:
    """A million objects, and ten million, one in a hundred of them orphaned: from a list of keys and a log."""
    rows = []
    for objects in (1_000_000, 10_000_000):
        # Three objects per segment; a live segment has two events, a deleted one four.
        generated = generate_metadata_log(folder / f"{objects}", int(objects / 3 * 2.02), live_share=0.99)
        log_dir = generated.log_file.parent.parent
        keys, lines = folder / "keys", folder / "lines"
        subprocess.run(python("keys_of_segments", log_dir, keys), check=True)
        with lines.open("wb") as out:
            subprocess.run(tieredctl("metadata", "format", "--log-dir", log_dir), stdout=out, check=True)
        scan = tieredctl("orphans", "scan", "--log-dir", log_dir, "--key-list", keys, "--store", f"file:{folder}")
        contenders = [
            Contender("grep, mawk, sort and join", [str(_ORPHANS_SCRIPT), str(lines), str(keys)]),
            Contender("tieredctl orphans scan", [*scan, "--layout", "local"], exit_code=3),
        ]
        race(*contenders, repetitions=3)
        notes = {one.name: f"{one.median('cpu'):.1f} s of CPU, {one.median('megabytes'):.0f} MB" for one in contenders}
        title = f"The owners of {objects:,} objects: wall-clock time"
        rows += compared(title, contenders, "wall", "s", {contenders[1].name: 1.0}, notes)
        shutil.rmtree(log_dir)
    return rows


def listing(_: Path, __: KafkaJars) -> list[Row]:
    """A bucket of sixty thousand objects, listed over HTTP from a server on this machine."""
    with versitygw() as server:
        os.environ.update(AWS_ACCESS_KEY_ID=ACCESS_KEY, AWS_SECRET_ACCESS_KEY=SECRET_KEY)
        objects = fill_bucket(server.data / LISTED_BUCKET)
        words = (server.endpoint, str(objects))
        contenders = [
            Contender("boto3's paginator of ListObjectsV2", python("list_bucket", "boto3", *words)),
            Contender("tieredctl, a page after the other", python("list_bucket", "store", *words)),
            Contender("tieredctl orphans scan's listing", python("list_bucket", "ranges", *words)),
        ]
        race(*contenders, repetitions=3)
    notes = {one.name: f"{one.median('cpu'):.1f} s of CPU, {one.median('megabytes'):.0f} MB" for one in contenders}
    title = f"{objects:,} objects of a bucket listed: wall-clock time"
    return compared(title, contenders, "wall", "s", {contenders[2].name: 1.0}, notes)


def replay(folder: Path, jars: KafkaJars) -> list[Row]:
    """A million events, and ten million, replayed by Kafka and by the commands that read all of them."""
    return replay_rows(folder, jars)


def snapshot(folder: Path, jars: KafkaJars) -> list[Row]:
    """A KRaft snapshot of a million records, as lines of JSON."""
    generated = generate_snapshot(folder / "snapshot", SNAPSHOT_RECORDS)
    dump = kafka_tool(jars, dump_log_class(jars), "--cluster-metadata-decoder", "--files", str(generated.file))
    contenders = [
        Contender("kafka-dump-log --cluster-metadata-decoder", dump),
        Contender(
            "tieredctl snapshot inspect -o jsonl", tieredctl("snapshot", "inspect", generated.file, "-o", "jsonl")
        ),
    ]
    race(*contenders)
    ours = contenders[1]
    notes = {
        one.name: f"{generated.records / one.median('cpu') / 1e6:.2f} M records a second of CPU, "
        f"{one.median('megabytes'):.0f} MB"
        for one in contenders
    }
    title = f"A snapshot of {generated.records:,} records: user and system time"
    rows = compared(title, contenders, "cpu", "s", {ours.name: 1.0}, notes)
    title = f"A snapshot of {generated.records:,} records: peak memory, against 300 MB"
    return [*rows, within(title, ours, "megabytes", "MB", 300, f"{ours.median('wall'):.1f} s")]


def coordinator(folder: Path, _: KafkaJars) -> list[Row]:
    """A diskless coordinator's commits, state and recovery; `python -m benchmarks.coordinator` takes a size."""
    return coordinator_rows(folder, BATCHES)


def records(folder: Path, jars: KafkaJars) -> list[Row]:
    """Topics of 1 KB records read from remote storage, and by consumers of a local broker."""
    return records_rows(folder, jars)


SUITES: dict[str, Callable[[Path, KafkaJars], list[Row]]] = {
    "decode": decode,
    "verify": verify,
    "start": start,
    "memory": memory,
    "orphans": orphans,
    "listing": listing,
    "replay": replay,
    "snapshot": snapshot,
    "coordinator": coordinator,
    "records": records,
}


def main() -> None:
    """Runs the suites that are named, or all."""
    suites = "\n".join(f"  {name:<11} {suite.__doc__}" for name, suite in SUITES.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure, print a table, and write build/bench.json.",
        epilog=f"suites:\n{suites}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", choices=["all", *SUITES], default="all", help="all by default"
    )
    named = parser.parse_args().suites
    chosen = list(SUITES) if "all" in named else named
    jars = kafka_jars(KAFKA_VERSION)
    rows: list[Row] = []
    for name in chosen:
        print(f"{name}: {SUITES[name].__doc__}", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder:
            rows += SUITES[name](Path(folder), jars)
    machine: dict[str, object] = {"cores": os.cpu_count(), "python": platform.python_version(), "kafka": KAFKA_VERSION}
    print(table(rows))
    write_json(JSON_FILE, rows, machine)


if __name__ == "__main__":
    main()
