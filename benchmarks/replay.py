"""The suite `replay`: commands that read a whole cluster's metadata, against Kafka's own replay of the same log."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.listed_store import SCHEME
from benchmarks.measure import Contender, python, race, tieredctl
from benchmarks.results import Row, compared, within
from tests.rigs.maven import JAVA_SOURCES, KafkaJars, compile_java, java_command
from tests.rigs.metadata_log_generator import GeneratedMetadataLog, generate_metadata_log

LIVE_SHARE = 0.9
_BEFORE_EVERY_EVENT_MS = "1700000000000"
_REPLAY_CLASS = "org.apache.kafka.server.log.remote.metadata.storage.MetadataReplay"


@dataclass(frozen=True)
class ReplaySize:
    """How many events to replay, how often, with which heap for Java, and within which limits."""

    events: int
    repetitions: int
    heap: str
    seconds: float
    """CPU of a command that prints little."""
    seconds_with_lines: float
    """CPU of a command that prints a line for each segment."""
    megabytes: float


REPLAY_SIZES = (
    ReplaySize(1_100_000, 3, "2g", 3, 8, 300),
    ReplaySize(10_000_000, 1, "8g", 30, 80, 1_500),
)


@dataclass(frozen=True)
class _Commands:
    """The commands that read all of the metadata."""

    stats: Contender
    stuck: Contender
    lookup: Contender
    segments: Contender
    verify: Contender

    @property
    def all(self) -> list[Contender]:
        return [self.stats, self.stuck, self.lookup, self.segments, self.verify]


@dataclass(frozen=True)
class _Phases:
    """What parts of the work cost separately."""

    kafka_start: Contender
    kafka_read: Contender
    kafka_decode: Contender
    start: Contender
    decode_start: Contender
    decode: Contender

    @property
    def all(self) -> list[Contender]:
        return [self.kafka_start, self.kafka_read, self.kafka_decode, self.start, self.decode_start, self.decode]


def replay_rows(folder: Path, jars: KafkaJars) -> list[Row]:
    """The rows of all sizes. The logs are made in `folder`, one at a time."""
    one_event = generate_metadata_log(folder / "one", 1).log_file
    rows = []
    for size in REPLAY_SIZES:
        rows += _rows(folder, jars, size, one_event)
        shutil.rmtree(folder / "many")
    return rows


def _rows(folder: Path, jars: KafkaJars, size: ReplaySize, one_event: Path) -> list[Row]:
    generated = generate_metadata_log(folder / "many", size.events, live_share=LIVE_SHARE)
    log_file, keys = generated.log_file, folder / "keys"
    log_dir = log_file.parent.parent
    told = _words_told(_kafka(jars, size, log_file, "replay", keys))
    kafka = Contender("Kafka's RemotePartitionMetadataStore", _kafka(jars, size, log_file, "replay"))
    printed = Contender("Kafka's store, its segments printed", _kafka(jars, size, log_file, "print"))
    commands = _commands(generated, keys, told)
    phases = _Phases(
        Contender("Kafka's replay of one event", _kafka(jars, size, one_event, "replay")),
        Contender("Kafka's reading", _kafka(jars, size, log_file, "read")),
        Contender("Kafka's reading and decoding", _kafka(jars, size, log_file, "decode")),
        Contender("tieredctl metadata stats, one event", tieredctl("metadata", "stats", "--log-dir", folder / "one")),
        Contender("column decoding, one event", python("decode_columns", folder / "one")),
        Contender("column decoding", python("decode_columns", log_dir)),
    )
    race(kafka, printed, *commands.all, *phases.all, repetitions=size.repetitions)
    title = f"{size.events:,} events of {generated.segments:,} segments"
    notes = _notes(phases, kafka, commands)
    notes[commands.segments.name] += f" (some {_cpu(commands.segments) - _cpu(commands.stuck):.1f} of it printing)"
    notes[commands.verify.name] += f" ({3 * generated.copy_finished:,} objects listed and judged)"
    goals = {command.name: 1.0 for command in commands.all}
    lines = f"{title}, {int(told['segments']):,} lines printed"
    return [
        *compared(f"{title}: user and system time", [kafka, *commands.all], "cpu", "s", goals, notes),
        *compared(f"{title}: wall-clock time", [kafka, *commands.all], "wall", "s", {}, {}),
        *compared(f"{lines}: user and system time", [printed, commands.segments], "cpu", "s", goals, {}),
        *_against_limits(title, commands, size),
    ]


def _commands(generated: GeneratedMetadataLog, keys: Path, told: Mapping[str, str]) -> _Commands:
    log_dir = generated.log_file.parent.parent

    def metadata(noun: str, *words: str, exit_code: int = 0) -> Contender:
        command = tieredctl("metadata", noun, *words, "--log-dir", log_dir)
        return Contender(f"tieredctl metadata {noun}", command, exit_code)

    under_way = generated.copy_started + generated.delete_started
    listed = ("--store", f"{SCHEME}:{keys}", "--layout", "aiven", "--now", _BEFORE_EVERY_EVENT_MS)
    verify = python("listed_store", "verify", "--level", "listing", *listed, "--log-dir", log_dir)
    return _Commands(
        stats=metadata("stats"),
        stuck=metadata("stuck", exit_code=3 if under_way else 0),
        lookup=metadata("lookup", told["partition"], "--epoch", told["epoch"], "--offset", told["offset"]),
        segments=metadata("segments", "-o", "jsonl"),
        verify=Contender("tieredctl verify --level listing", verify),
    )


def _against_limits(title: str, commands: _Commands, size: ReplaySize) -> Iterator[Row]:
    short = [commands.stats, commands.stuck, commands.lookup]
    for command, seconds in [*((one, size.seconds) for one in short), (commands.segments, size.seconds_with_lines)]:
        yield within(f"{title}: user and system time against {seconds:g} s", command, "cpu", "s", seconds)
    for command in commands.all:
        limit = size.megabytes
        yield within(f"{title}: peak memory against {limit:,} MB", command, "megabytes", "MB", limit)


def _notes(phases: _Phases, kafka: Contender, commands: _Commands) -> dict[str, str]:
    """Where each contender's CPU time goes, in seconds, and how much memory it takes."""
    begin, read, decode = map(_cpu, (phases.kafka_start, phases.kafka_read, phases.kafka_decode))
    notes = {
        kafka.name: f"{_memory(kafka)}; start-up {begin:.1f}, reading {read - begin:.1f}, "
        f"decoding {decode - read:.1f}, replay {_cpu(kafka) - decode:.1f}"
    }
    start, decoding = _cpu(phases.start), _cpu(phases.decode) - _cpu(phases.decode_start)
    for command in commands.all:
        rest = _cpu(command) - start - decoding
        said = f"start-up {start:.1f}, reading and decoding {decoding:.1f}, the rest {rest:.1f}"
        notes[command.name] = f"{_memory(command)}; {said}"
    return notes


def _memory(contender: Contender) -> str:
    return f"{contender.median('megabytes'):,.0f} MB"


def _cpu(contender: Contender) -> float:
    return contender.median("cpu")


def _kafka(jars: KafkaJars, size: ReplaySize, log_file: Path, depth: str, *keys: Path) -> list[str]:
    """Java with all of its heap from the start, so that garbage collection costs the least."""
    classes = compile_java([JAVA_SOURCES / "MetadataReplay.java"], jars.class_path)
    heap = (f"-Xms{size.heap}", f"-Xmx{size.heap}", "-XX:+UseParallelGC")
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    class_path = os.pathsep.join([str(classes), jars.class_path])
    return [java_command(), *heap, quiet, "-cp", class_path, _REPLAY_CLASS, str(log_file), depth, *map(str, keys)]


def _words_told(command: Sequence[str]) -> dict[str, str]:
    """The NAME=VALUE words that a Java program prints."""
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(word.split("=") for word in told.split())
