"""docs/kips.md lists each section of five KIPs, names only what there is, and a test that uses it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest

from tieredctl.cli.completion.command_table import CommandTable

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT, *ROOT.glob("plugins/*")]
"""Where packages are."""
PAGE = ROOT / "docs" / "kips.md"
ROW = re.compile(r"^\| (?P<section>.+?) \| (?P<place>.*?) \|(?: (?P<test>\S+))? \|$")
QUOTED = re.compile(r"`([^`]+)`")
COMMAND = re.compile("tieredctl ")
NOTHING_TO_TEST = ("background", "the brokers'", "the sections below it")

HEADINGS = {
    "KIP-405": """
Status
Motivation
Kafka as a long-term storage service
Kafka local storage and operational complexity
Kafka in cloud
Solution - Tiered storage for Kafka
Goals
Non-Goals
Proposed Changes
High-level design
RemoteLogManager (RLM)
Local and Remote log offset constraints
Replica Manager
Follower Replication
Overview
Follower fetch protocol in detail
Follower fetch scenarios(including truncation cases)
Scenario 1: new empty follower
Scenario 2: out-of-sync follower catching up
Scenario 3: Multiple hard failures (Scenario 2 of KIP-101)
Scenario 4: unclean leader election including truncation.
Scenario 5: log divergence in remote storage - unclean leader election
Follower to leader transition
Transactional support
Consumer Fetch Requests
Other APIs
DeleteRecords
ListOffsets
LeaderAndIsr
Stopreplica
OffsetForLeaderEpoch
LogStartOffset
RLM/RSM tasks and thread pools
1. Remote Log Manager (RLM) Thread Pool
2. Remote Storage Fetcher Thread Pool
Remote Log Metadata State transitions
RemoteLogMetadataManager implemented with an internal topic
RLMM segment overhead:
Message Format
Schema
Configs
Committed offsets file format
Internal flat-file store format of remote log metadata
Message Formatter for the internal topic
Internal message format
Topic deletion lifecycle
Protocol Changes
ListOffsets
Fetch
Public Interfaces
Configs
Remote Storage Manager
RemoteLogMetadataManager
New Metrics
Upgrade
Downgrade
Limitations
Integration and System tests
Feature Test
Performance Test Results
Test case 1 (Normal case):
Test case 2 (out-of-sync consumers catching up):
Test case 3 (rebuild broker):
Future work
Alternatives considered
Meeting Notes
Other associated KIPs
""",
    "KIP-1023": """
Status
Motivation
Public Interfaces
Broker Configuration options
List Offsets API
Proposed Changes
High-Level Design
FetchOffet API Changes
ReplicaFetcher Changes
Follower Fetch Scenarios
Upgrade
Test Plan
Rejected Alternatives
""",
    "KIP-630": """
Status
Terminology
Motivation
Type of State Machines and Operations
Loading State and Frequency of Compaction
Amount of Data Replicated
Consistent Log and Tombstones
Overview
Proposed Changes
Design
Snapshot Format
Snapshot Control Records
Snapshot Header Schema
Snapshot Footer Schema
When to Snapshot
When to Increase the LogStartOffset
When to Delete Snapshots
Interaction with the Kafka Controller and Metadata Cache
From Kafka Raft to the Kafka Controller and Metadata Cache
From the Kafka Controller and Metadata Cache to Kafka Raft
Loading Snapshots
Changes to Leader Election
Validation of Snapshot and Log
Public Interfaces
Topic configuration
Network Protocol
Fetch
Request Schema
Response Schema
Handling Fetch Request
Handling Fetch Response
Fetching Snapshots
Request Schema
Response Schema
Request Handling
Errors:
Response Handling
Errors:
Metrics
Compatibility, Deprecation, and Migration Plan
Rejected Alternatives
""",
    "KIP-1176": """
Status
Motivation
Proposed Changes
Overall architecture and Cloud Storage for Active Log Segment
Key Classes and Constructs
Configs
RemoteWalStorageManager
RemoteLogManager.RLMWalTask
RemoteWalCombinedLogSegmentMetadata and metadata topic __remote_wal_log_metadata
RemoteLogManager.RLMWalCombinerTask
Producer Path to The Leader Broker
Producer Acknowledgement
Acks=1
Acks=-1 / Acks=all
The role of object storage for replication factor
Replication and Download on follower broker
Life Cycle of the active log segments on the cloud storage
Performance Considerations
Reliance on PageCache
Same performance for acks=1 producer path and close performance for acks=-1
Performance tuning of uploading Active Log Segments onto Cloud Storage
Using a traditional cloud storage (e.g. S3) for active log segments
AZ Availability
Leader Failover and Recovery in an AZ Outage
Data Durability
Public Interfaces
org.apache.kafka.common.config.TopicConfig
org.apache.kafka.server.log.remote.storage.RemoteLogManagerConfig
org.apache.kafka.server.log.remote.storage.RemoteWalCombinedLogSegmentMetadata
org.apache.kafka.server.log.remote.storage.RemoteWalCombinedLogSegmentMetadataUpdate
org.apache.kafka.server.log.remote.storage.RemoteWalStorageManager
kafka.log.remote.RemoteLogManager.RLMWalTask
kafka.log.remote.RemoteLogManager.RLMWalCombineTask
Compatibility, Deprecation, and Migration Plan
Test Plan
Rejected Alternatives
Comparison to KIP-1150: Diskless Kafka Topic
Comparison to KIP-405: Tiered Storage
Future enhancement
Cloud native elasticity
Further reduction of latency broker resources
Appendix: Cost Estimate for a typical workload
Workload example
Comparison Table
Appendix: Performance Data
Configuration
Results
End to End Latency
Kafka Producer/Consumer Perf Test Scripts
Analysis
""",
    "KIP-1164": """
Status
Motivation
Role of Diskless coordinator
Proposed Changes
Diskless coordinator API
Topic-based implementation
Partitioning of __diskless_metadata
Leadership and deployment
Local state machine
How operations are performed
Metadata log size management
WAL file management
Orphan files
Reducing multi-DC commit operations
Scenario 1: the number of brokers is less than the number of DCs
Scenario 2: same, just more brokers
Scenario 3: the number of brokers is equal to the number of DCs
Scenario 4: the number of brokers is greater than the number of DCs
Scenario 5: same, just more brokers
Scenario 6: same, just more brokers
Public Interfaces
Diskless coordinator API
DisklessCreatePartitions
DisklessDeleteTopics
DisklessCommitFile
DisklessDeleteRecords
DisklessListOffsets
DisklessFindBatches
DisklessDescribeFiles
Metadata records
DisklessPartitionCreatedRecord
DisklessTopicDeletedRecord
DisklessFileCommittedRecord
DisklessRecordsDeletedRecord
Configuration
Broker configuration
Monitoring
Compatibility, Deprecation, and Migration Plan
Test Plan
Rejected Alternatives
Use external system
Use cluster KRaft quorum
Use separate KRaft quorum
""",
}
"""In the KIPs' own order. A heading that comes twice has what it is of after it, on the page."""


def rows(kip: str) -> list[tuple[str, str, str | None]]:
    """(section, place, test) of each row of a KIP's table."""
    text = PAGE.read_text(encoding="utf-8")
    table = text.split(f"\n## {kip}\n")[1].split("\n## ")[0].split("\n### ")[0]
    found = [match for line in table.splitlines() if (match := ROW.match(line))]
    return [(one["section"], one["place"], one["test"]) for one in found if one["section"] not in ("section", "---")]


@pytest.mark.parametrize("kip", HEADINGS)
def test_every_section_of_a_kip_is_listed(kip: str) -> None:
    headings = HEADINGS[kip].strip().splitlines()

    sections = [section for section, _, _ in rows(kip)]

    assert [section for section, heading in zip(sections, headings, strict=True) if section.startswith(heading)] == (
        sections
    )


@pytest.mark.parametrize("kip", HEADINGS)
def test_what_a_section_names_is_there(kip: str) -> None:
    for section, place, _ in rows(kip):
        for name in QUOTED.findall(place):
            if name.startswith("tieredctl "):
                assert is_command(name.split()[1:]), (section, name)
            elif name.endswith(".py"):
                assert any((folder / name).is_file() for folder in FOLDERS), (section, name)


def is_command(words: list[str]) -> bool:
    """Whether the command line has these words, and the last command of them the options."""
    verbs = list(takewhile(lambda word: not word.startswith("-"), words))
    table = CommandTable.installed()
    options = {word for word in words if word.startswith("-")}
    return table.has(verbs) and table.command(verbs).options.keys() >= options


@pytest.mark.parametrize("kip", HEADINGS)
def test_what_has_no_command_says_so(kip: str) -> None:
    for section, place, _ in rows(kip):
        names = QUOTED.findall(place)
        has_only_modules = any(name.endswith(".py") for name in names) and not any(map(COMMAND.match, names))
        assert has_only_modules == ("no command" in place), section


@pytest.mark.parametrize("kip", HEADINGS)
def test_the_test_of_a_section_uses_what_the_section_names(kip: str) -> None:
    for section, place, test in rows(kip):
        names = QUOTED.findall(place)
        modules = {name for name in names if name.endswith(".py")}
        commands = [name.split()[1:] for name in names if COMMAND.match(name)]
        if test is None or not (modules or commands):
            continue
        used = sources_of(ROOT / test.strip("`").partition("::")[0])
        runs = any(mentions(text, words) for text in used.values() for words in commands)
        assert runs or modules & used.keys() or reaches_command(used, commands), (section, test)


def sources_of(test: Path) -> dict[str, str]:
    """The text of a test and of all that it imports, directly or not, by path within its package's folder."""
    found: dict[str, str] = {}
    waiting = [str(test.relative_to(ROOT))]
    while waiting:
        name = waiting.pop()
        source = None if name in found else read(name)
        if source is not None:
            found[name], imports = source
            waiting += imports
    return found


@cache
def read(name: str) -> tuple[str, Sequence[str]] | None:
    """A file's text, and the files that it imports; None where there is none."""
    file = next((folder / name for folder in FOLDERS if (folder / name).is_file()), None)
    if file is None:
        return None
    text = file.read_text(encoding="utf-8")
    return text, list(imported(name, text))


def imported(name: str, text: str) -> Iterator[str]:
    """The files that a module's imports may name."""
    for one in ast.walk(ast.parse(text)):
        if isinstance(one, ast.ImportFrom):
            package = "/".join(name.split("/")[: -one.level]) + "/" if one.level else ""
            module = package + (one.module or "").replace(".", "/")
            yield f"{module}.py"
            yield from (f"{module}/{alias.name}.py" for alias in one.names)


def mentions(text: str, words: list[str]) -> bool:
    """Whether a text has a command's words one after the other, as arguments or on a command line."""
    return '", "'.join(words) in text or " ".join(words) in text


def reaches_command(used: Mapping[str, str], commands: list[list[str]]) -> bool:
    """Whether what a test imports has the operation of one of the commands, under the name of its noun or verb."""
    verbs = {word.replace("-", "_") for words in commands for word in words if not word.startswith("-")}
    return any(verbs & set(re.split(r"[/_.]", path)) for path in used if not path.startswith("tests/"))


@pytest.mark.parametrize("kip", HEADINGS)
def test_the_test_of_a_section_is_there(kip: str) -> None:
    for section, place, test in rows(kip):
        if test is None:
            assert place.startswith(NOTHING_TO_TEST), section
            continue
        file, _, name = test.strip("`").partition("::")
        assert (ROOT / file).is_file(), (section, file)
        if name:
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), (section, test)


SETTINGS = {
    ("docs/wal.md", "\n## Settings\n"): (
        "remote.wal.storage.enable",
        "remote.log.wal.storage.manager.impl.prefix",
        "remote.log.wal.storage.system.enable",
        "remote.log.wal.storage.manager.class.name",
        "remote.log.wal.storage.manager.class.path",
        "remote.wal.log.manager.thread.pool.size",
        "remote.wal.log.manager.combiner.thread.pool.size",
        "remote.wal.log.manager.combiner.queue.size",
        "remote.wal.log.manager.combiner.task.interval.ms",
        "remote.wal.log.manager.combiner.task.upload.bytes",
    ),
    ("docs/diskless.md", "\n### Settings\n"): (
        "diskless.metadata.topic.num.partitions",
        "diskless.coordinator.orphan.scan.interval.ms",
        "diskless.coordinator.orphan.scan.grace.period.ms",
    ),
}
"""Of KIP-1176 and KIP-1164, by the page and its heading."""


def test_every_setting_of_the_proposals_has_its_counterpart() -> None:
    for (page, heading), settings in SETTINGS.items():
        table = (ROOT / page).read_text(encoding="utf-8").split(heading)[1].split("\n## ")[0].split("\n### ")[0]

        named = [name for line in table.splitlines() for name in QUOTED.findall(line.partition(" | ")[0])]

        assert sorted(named) == sorted(settings), page
