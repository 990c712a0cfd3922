"""docs/security.md: what its table grants is enough for the commands of each row, and no row is enough for the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._resource import ResourceType

from tests.cli.command_line import REPOSITORY, Outcome, this_process
from tests.cli.command_tree import command_at, commands
from tests.cli.running_exporter import exporter, is_up
from tests.doctor.bucket_answers import CLEAN
from tests.rigs.access_rules import Rule, allowed
from tests.rigs.broker import METADATA_TOPIC
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.inkless import Inkless
from tests.rigs.settings_server import BUCKET, settings_server
from tests.rigs.small_spark import INTERPRETED, SMALL
from tests.rigs.workload import DrivenTopic
from tests.shares import divided
from tests.wal.local_partitions import batch, write_partition
from tieredctl.cli.command_tree import nouns
from tieredctl.errors import ExitCode
from tieredctl.model.command_packages import command_packages
from tieredctl.model.command_rights import OWN_RIGHTS
from tieredctl.model.ids import TopicIdPartition

PAGE = REPOSITORY / "docs" / "security.md"
RESOURCES = (
    (ResourceType.TOPIC, METADATA_TOPIC),
    (ResourceType.TOPIC, "*"),
    (ResourceType.BROKER, "kafka-cluster"),
    (ResourceType.GROUP, "*"),
)
"""What the table's columns are about."""
OPERATIONS = {
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "Read": AclOperation.READ,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
}
SPARK_CONF = [
    word
    for name, value in ({"spark.master": "local[2]"} | SMALL | INTERPRETED).items()
    for word in ("--spark-conf", f"{name}={value}")
]
NOT_ALLOWED = re.compile(r"The user may not .*\. *\n? *The user needs the operations? \w+")


@dataclass(frozen=True)
class Row:
    commands: tuple[str, ...]
    rules: tuple[Rule, ...]

    def __str__(self) -> str:
        return self.commands[0]


def rows() -> Iterator[Row]:
    """Those of the table of commands."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        named, *granted = [cell.strip() for cell in line.strip("|").split("|")]
        if named.startswith("`") and len(granted) == len(RESOURCES):
            rules = [
                Rule(*resource, OPERATIONS[operation])
                for resource, cell in zip(RESOURCES, granted, strict=True)
                for operation in cell.split(", ")
                if operation
            ]
            yield Row(tuple(commands_in(named)), tuple(rules))


def commands_in(cell: str) -> Iterator[str]:
    """`orphans scan`, `plan`; `verify` are three commands."""
    for group in cell.split("; "):
        noun = ""
        for words in re.findall(r"`([^`]+)`", group):
            noun = noun or words.partition(" ")[0]
            yield words if words.startswith(noun) else f"{noun} {words}"


def commands_without_a_broker() -> set[str]:
    """Those that the page says so of."""
    (text,) = re.findall(r"^- \*\*No broker is asked\*\* by (.*?)\.$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return set(commands_in(" ".join(text.split())))


def asks_a_broker(command: Any) -> bool:
    return any("--bootstrap-server" in parameter.opts for parameter in command.params)


ROWS = list(rows())
ADDED = [pytest.param(before, row, id=str(row)) for before, row in pairwise(ROWS[2:6])]
"""Each of these rows grants what the row before it does, and more."""


def test_every_command_has_a_row_or_asks_no_broker() -> None:
    every = {" ".join(words): command for words, command in commands()}
    every |= {
        noun: command for noun in nouns() if getattr(command := command_at((noun,)), "invoke_without_command", None)
    }
    with_rights = {name.partition(" --")[0] for row in ROWS for name in row.commands} | {"snapshot fetch", "backup run"}
    without = commands_without_a_broker()

    assert with_rights | without == set(every)
    assert with_rights & without == set()
    only_kept = {"context show", "context add"}
    assert [name for name in without - only_kept if asks_a_broker(every[name])] == []
    assert [name for name in with_rights if not asks_a_broker(every[name])] == []


def test_the_rights_that_the_code_names_are_the_pages() -> None:
    named = {" ".join(words): rights for one in command_packages() for words, rights in one.rights.items()}
    named |= {name: rights for rights, names in OWN_RIGHTS.items() for name in names}

    granted = {
        name.partition(" --")[0]: {(rule.kind, rule.name, rule.operation) for rule in row.rules}
        for row in ROWS
        for name in row.commands
        if row.rules
    }
    assert granted == {
        name: {
            (*resource, OPERATIONS[operation])
            for resource, operations in zip(RESOURCES, rights, strict=True)
            for operation in operations
        }
        for name, rights in named.items()
    }


@pytest.fixture
def words(
    prices: None, kafka_4: DrivenBroker, inkless: Inkless, sound_bucket: tuple[str, ...], tmp_path: Path
) -> Mapping[str, tuple[str, ...]]:
    """What each command of the table is given besides the cluster."""
    broker, topics = kafka_4.broker, kafka_4.cluster.topics
    store = ("--store", f"file:{broker.remote_dir}")
    plain = ("--bootstrap-server", broker.bootstrap_server)
    segment = this_process("metadata", "segments", *plain, "--topic", "orders", "-o", "jsonl").lines()[0]["segmentId"]
    plan = str(tmp_path / "plan")
    purged = ("--older-than", "14d", "--yes", "--cluster-id", broker.cluster_id)
    wal = uploaded(topics["orders"].topic_id, broker.cluster_id, tmp_path)
    copied_to = ("--to", f"file:{copytree(broker.remote_dir, tmp_path / 'copy')}")
    return {
        "metadata history": (segment,),
        "metadata lookup --epoch": ("0", "orders:0", "--offset", "5"),
        "metadata epochs": ("orders:0",),
        "metadata partition-of": ("orders:0",),
        "metadata export": (str(tmp_path / "events.parquet"),),
        "store check": (str(broker.log_dir), *store),
        "store compare": (*store, *copied_to),
        "store copy": (*store, *copied_to),
        "remote read": (segment, *store, "--to", str(tmp_path / "segment.log")),
        "remote records": ("orders", *store),
        "estimate cost": store,
        "pipeline run": (*store, "--tables", str(tmp_path / "tables"), *SPARK_CONF),
        "diskless explain": ("audit:0@299", *inkless.control_plane),
        "wal clean": wal,
        "wal purge": (*wal, *purged),
        "wal upload": ("--log-dir", str(tmp_path / "logs"), *wal),
        "wal restore": ("--to", str(tmp_path / "restored"), "--dry-run", *wal),
        "doctor store": sound_bucket,
        "exporter": store,
        "support-bundle": ("--to", str(tmp_path / "bundle.tar.gz"), "--force"),
        "verify": store,
        "orphans scan": store,
        "orphans plan": (*store, "--to", plan),
        "orphans purge": (*store, *purged),
        "partition remove": (*store, topics["retired"].topic_id),
        "offsets": ("orders",),
        "explain": ("orders:0@5",),
        "recover metadata": store,
        "recover indexes": (*store, segment),
        "heal": (*store, "--segment-id", segment),
        "topic status": ("orders",),
        "estimate retention": ("ledger", "--local-retention-bytes", "500000"),
        "estimate follower-bootstrap": ("ledger:0", "--throughput", "50kB"),
        "status": store,
        "topic enable": ("untiered",),
        "topic disable": ("orders", "--stop-copying"),
    }


@pytest.fixture
def sound_bucket(cloud_environment: None) -> Iterator[tuple[str, ...]]:
    """One whose server answers every question."""
    with settings_server() as server:
        server.answer(CLEAN)
        options = ("--store-option", f"endpoint={server.endpoint}", "--store-option", "addressing-style=path")
        yield "--store", f"s3://{BUCKET}", *options


def uploaded(topic_id: str, cluster_id: str, folder: Path) -> tuple[str, str]:
    """A store with a combined object of the topic."""
    write_partition(folder / "logs", TopicIdPartition(topic_id, "orders", 0), [batch(0)], cluster_id=cluster_id)
    (folder / "wal").mkdir()
    store = ("--store", f"file:{folder / 'wal'}")
    outcome = this_process("wal", "upload", "--log-dir", folder / "logs", *store, "--upload-bytes", "100", "--apply")
    assert outcome.exit_code == ExitCode.CLEAN, outcome.err
    return store


@pytest.fixture
def prices(kafka_4: DrivenBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what estimates a cost."""
    config = tmp_path / "config.yaml"
    config.write_text(f"prices:\n- store: file:{kafka_4.broker.remote_dir}\n  perGiBMonth: 1\n  currency: EUR\n")
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(config))


def run(command: str, kafka: DrivenBroker, client: Path, words: Mapping[str, tuple[str, ...]]) -> Outcome:
    server = kafka.broker.secure_listeners.sasl_ssl
    place = ("--bootstrap-server", server, "--command-config", client)
    if command == "exporter":
        return watched(*words[command], *place)
    return this_process(*command.split(), *words.get(command, ()), *place)


def watched(*words: str | Path) -> Outcome:
    """An exporter's first look: whether it could look at everything."""
    with exporter(*words) as running:
        samples = running.awaited(lambda seen: ("tieredctl_exporter_refresh_seconds",) in seen)
        running.stop()
    is_whole = is_up(samples) and not any("code=check-not-made" in key for key in samples)
    return Outcome(ExitCode.CLEAN if is_whole else ExitCode.INCOMPLETE, "", running.said)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_what_a_row_grants_is_enough(
    row: Row, kafka_4: DrivenBroker, words: Mapping[str, tuple[str, ...]], tmp_path: Path
) -> None:
    with allowed(kafka_4.broker, tmp_path, row.rules or [OF_NO_USE]) as client:
        # There is nothing to apply; and what was uploaded is not what follows on remote storage, to be restored.
        for command in set(row.commands) - {"orphans apply", "wal restore"}:
            outcome = run(command, kafka_4, client, words)

            assert outcome.exit_code in (ExitCode.CLEAN, ExitCode.FINDINGS), f"{command}: {outcome.err}{outcome.out}"
            assert "may not" not in outcome.err + outcome.out, command


@pytest.mark.parametrize(("before", "row"), ADDED)
def test_less_is_not_enough_and_what_is_missing_is_named(
    before: Row, row: Row, kafka_4: DrivenBroker, words: Mapping[str, tuple[str, ...]], tmp_path: Path
) -> None:
    with allowed(kafka_4.broker, tmp_path, before.rules) as client:
        for command in set(row.commands) - {"wal purge"}:  # there is nothing to purge
            outcome = run(command, kafka_4, client, words)

            assert outcome.exit_code in (ExitCode.FAILURE, ExitCode.INCOMPLETE), f"{command}: {outcome.err}"


IMPLYING = {
    AclOperation.DESCRIBE: (AclOperation.READ,),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}
"""Who may do one of these may do the first, too (StandardAuthorizerData)."""
OF_NO_USE = Rule(ResourceType.TOPIC, "no such topic", AclOperation.DESCRIBE)
SEEN_WITHOUT = {
    ("wal clean", AclOperation.DESCRIBE),
    ("recover indexes", AclOperation.DESCRIBE),
    ("heal", AclOperation.DESCRIBE),
    ("estimate follower-bootstrap", AclOperation.DESCRIBE_CONFIGS),
    ("topic disable", AclOperation.DESCRIBE_CONFIGS),
    ("doctor config", AclOperation.DESCRIBE),
    ("doctor store", AclOperation.DESCRIBE),
}
"""What a command does not ask for, of what its row grants to others; and `doctor config` and `doctor store` read no
metadata, which alone would name what the cluster hides."""
TOPICS_DESCRIBED = Rule(ResourceType.TOPIC, "*", AclOperation.DESCRIBE)
LISTING_TOPICS = {"topic list", "doctor"}
"""What names the topics that the cluster hides, by their ids; `status` has them in its document."""
NOT_ASKED = {"orphans apply", "orphans purge", "wal purge", "exporter"}
"""What has nothing to apply or to purge asks nobody; and what serves what it knows."""


def test_without_any_one_of_the_rights_no_command_pretends_that_there_is_nothing(
    kafka_4: DrivenBroker, words: Mapping[str, tuple[str, ...]], tmp_path: Path
) -> None:
    for missing, left, named in divided([*taken_away()]):
        with allowed(kafka_4.broker, tmp_path, left or [OF_NO_USE]) as client:
            for command in named - NOT_ASKED:
                if (command, missing.operation) in SEEN_WITHOUT:
                    continue
                outcome = run(command, kafka_4, client, words)

                said = outcome.err + outcome.out
                what = f"{command} without {missing.operation.name} on {missing.name}: {said}"
                assert outcome.exit_code in (ExitCode.FAILURE, ExitCode.INCOMPLETE), what
                assert outcome.exit_code != ExitCode.FAILURE or NOT_ALLOWED.search(outcome.err), what
                assert (
                    missing != TOPICS_DESCRIBED
                    or command not in LISTING_TOPICS
                    or all(topic.topic_id in said for topic in with_live_segments(kafka_4))
                ), what


def with_live_segments(kafka: DrivenBroker) -> list[DrivenTopic]:
    return [topic for topic in kafka.cluster.topics.values() if topic.tiered and not topic.deleted]


def taken_away() -> Iterator[tuple[Rule, tuple[Rule, ...], set[str]]]:
    """Each right of each row that no other right of it implies, what is left without it, and the row's commands."""
    for row in ROWS:
        for missing in row.rules:
            if missing.kind is ResourceType.GROUP:
                continue  # there are none: who may describe the cluster is shown the names of all
            left = tuple(rule for rule in row.rules if rule != missing)
            if not {missing._replace(operation=one) for one in IMPLYING.get(missing.operation, ())} & {*left}:
                yield missing, left, set(row.commands)


def test_who_may_read_everything_changes_nothing(
    kafka_4: DrivenBroker, words: Mapping[str, tuple[str, ...]], tmp_path: Path
) -> None:
    (reader,) = (row for row in ROWS if "doctor" in row.commands)
    confirmed = ("--apply", "--yes", "--cluster-id", kafka_4.broker.cluster_id)
    changes = {command: (*words[command], *confirmed) for command in ("topic enable", "topic disable")}
    with allowed(kafka_4.broker, tmp_path, reader.rules) as client:
        for command in changes:
            outcome = run(command, kafka_4, client, changes)

            assert outcome.exit_code == ExitCode.FAILURE
            assert NOT_ALLOWED.search(outcome.err), outcome.err
