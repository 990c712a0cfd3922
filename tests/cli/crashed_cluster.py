"""A captured cluster that crashed again and again, with what it left in its remote store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.command_line import Outcome, Tieredctl
from tieredctl.formats.file_names import CLUSTER_METADATA_FOLDER
from tieredctl.ops.guards.own_objects import CLOCK_KEY, LEASE_KEY
from tieredctl.ports.object_store import RESERVED_FOLDER

CAPTURE = "aiven-crash-4.3.1"
CLUSTER_ID = "rTFWgbQKRvehFNx-PhMpIg"
LISTED = 499
ORPHANS = 115
"""Objects of the store, and how many of them are orphaned."""
ENOUGH = ("--max-percent", "80")
"""Lets all of the orphans be planned at once."""
AGED = ("--min-age", "1h")
NO_AGE = ("--min-age", "0s", "--allow-young")
"""For servers, whose objects are as old as the test."""
AT_ONCE = ("--older-than", "0s", "--allow-young", *ENOUGH)
"""Lets all that is in quarantine be purged."""

DELETED_TOPIC = "gone33"
"""Of the crash capture."""
LONG_AGO = 1_700_000_000
WHILE_IT_RAN = 1_795_253_900
"""After the first event of each metadata partition of the crash capture, and before the last."""
AFTER_IT_RAN = WHILE_IT_RAN + 3_600
FOREIGN_TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"
FOREIGN = f"tiered/other-{FOREIGN_TOPIC_ID}/0/00000000000000000000-zXsqEEMnQWWg1Y7BM4vDkw.log"
NEVER_NAMED = "tiered/orders33-G4i52LJdRBel-FDnehx_Kw/77/00000000000000000000-zXsqEEMnQWWg1Y7BM4vDkw.log"
"""Of a topic that the metadata knows, and a partition that it does not."""
COPIED_AGAIN = "tiered/orders33-G4i52LJdRBel-FDnehx_Kw/0/00000000000000000000-zXsqEEMnQWWg1Y7BM4vDkw.log"
"""Of a segment that no event names, whose offsets other copies hold."""
OTHER_CLUSTER_ID = "Sf-gRTWSQf2k17pohiorEQ"


def objects_in(folder: Path) -> dict[str, bytes]:
    """What a store in a folder holds, tieredctl's own too."""
    objects = {}
    for place, _, names in os.walk(folder):
        inside = os.path.relpath(place, folder)
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                objects[name if inside == "." else f"{inside}/{name}"] = file.read()
    return objects


def without_own(objects: Mapping[str, bytes]) -> dict[str, bytes]:
    """Objects but for what is tieredctl's own."""
    return {key: data for key, data in objects.items() if not key.startswith(RESERVED_FOLDER)}


def plan_lines(plan: Path) -> list[dict[str, Any]]:
    """A plan's lines, header and digest too."""
    return [json.loads(line) for line in plan.read_bytes().splitlines()]


def planned_keys(plan: Path) -> set[str]:
    return {line["key"] for line in plan_lines(plan) if "key" in line}


@dataclass(frozen=True)
class CrashedCluster:
    """What the broker left, with a store of its own."""

    tieredctl: Tieredctl
    log_dir: Path
    folder: Path
    """For plans and receipts."""
    store: Sequence[str]
    """The options that name the store."""

    @property
    def plan_file(self) -> Path:
        return self.folder / "plan"

    @property
    def receipts_file(self) -> Path:
        return self.folder / "plan.receipts"

    @property
    def store_options(self) -> Sequence[str]:
        """The options of the store but for its name."""
        return self.store[2:]

    def scan(self, *words: str | Path) -> Outcome:
        """Of objects of any age, unless another is given."""
        where = (*self.store, "--layout", "aiven", "--log-dir", self.log_dir)
        age = () if "--min-age" in words else ("--min-age", "0s")
        return self.tieredctl("orphans", "scan", *where, *age, *words)

    def plan(self, *words: str | Path) -> Outcome:
        where = (*self.store, "--layout", "aiven", "--log-dir", self.log_dir, "--to", self.plan_file)
        return self.tieredctl("orphans", "plan", *where, *words)

    def apply(self, *words: str | Path) -> Outcome:
        return self.apply_unconfirmed("--yes", "--cluster-id", CLUSTER_ID, *words)

    def apply_unconfirmed(self, *words: str | Path) -> Outcome:
        metadata = ("--offline-metadata", "--log-dir", self.log_dir)
        return self.tieredctl("orphans", "apply", self.plan_file, *metadata, *self.store_options, *words)

    def restore(self, *words: str | Path) -> Outcome:
        return self.tieredctl("orphans", "restore", self.receipts_file, *self.store_options, *words)

    def purge(self, *words: str | Path) -> Outcome:
        metadata = ("--layout", "aiven", "--offline-metadata", "--log-dir", self.log_dir)
        confirmed = ("--yes", "--cluster-id", CLUSTER_ID)
        return self.tieredctl("orphans", "purge", *self.store, *metadata, *confirmed, *words)


@dataclass(frozen=True)
class CrashedClusterOnDisk(CrashedCluster):
    """One with its store in a folder."""

    bucket: Path

    def objects(self) -> dict[str, bytes]:
        return objects_in(self.bucket)


def broker_of(capture: Path) -> Path:
    """The log directory of a broker whose controllers are elsewhere: without their log, nothing tells which topics are
    gone."""
    folder = capture.parent.with_name("brokers") / capture.name / "broker"
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder.parent / "capture.json").symlink_to(capture / "capture.json")
        for entry in (capture / "data").iterdir():
            if entry.name != CLUSTER_METADATA_FOLDER:
                (folder / entry.name).symlink_to(entry)
    return folder


def crashed_cluster_on_disk(tieredctl: Tieredctl, capture: Path, folder: Path) -> CrashedClusterOnDisk:
    """A copy of the capture's store, below `folder`, that may be changed."""
    bucket = folder / "bucket"
    # Hundreds of tests ask for one: shutil takes twice as long.
    subprocess.run(["cp", "-a", capture / "bucket", bucket], check=True)
    return CrashedClusterOnDisk(tieredctl, broker_of(capture), folder, ("--store", f"file:{bucket}"), bucket)


def put(cluster: CrashedClusterOnDisk, key: str, data: bytes = b"bytes", modified: int = LONG_AGO) -> Path:
    """An object older than any event, unless it is told when it was written (in seconds)."""
    file = cluster.bucket / key
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    os.utime(file, (modified, modified))
    return file


def verdict_on(cluster: CrashedClusterOnDisk, key: str) -> tuple[str, str | None, int]:
    """An object's status and cause, and the scan's exit code."""
    scanned = cluster.scan("-o", "jsonl")
    (found,) = [line for line in scanned.lines() if line["key"] == key]
    return found["status"], found["cause"], scanned.exit_code


def without_lease(objects: Mapping[str, bytes]) -> dict[str, bytes]:
    """Objects but for the lease and the clock, which each run writes."""
    return {key: data for key, data in objects.items() if key not in (LEASE_KEY, CLOCK_KEY)}


def deleted_topic_id(cluster: CrashedCluster) -> str:
    """The id of the topic that was deleted last."""
    (topic_id,) = {id_ for topic, id_ in _topics(cluster) if topic == DELETED_TOPIC}
    return topic_id


def live_topic_ids(cluster: CrashedCluster) -> list[str]:
    """The ids of all topics that are tiered and there, and of the metadata topic."""
    own = (cluster.log_dir / "__remote_log_metadata-0" / "partition.metadata").read_text().split()[-1]
    return sorted({own} | {topic_id for topic, topic_id in _topics(cluster) if topic != DELETED_TOPIC})


def _topics(cluster: CrashedCluster) -> set[tuple[str, str]]:
    segments = json.loads((cluster.log_dir.parent / "capture.json").read_text())["segments"].values()
    return {(one["topic"], one["topic_id"]) for one in segments}


def metadata_of(cluster: CrashedCluster, folder: Path) -> Path:
    """A copy of a cluster's metadata, that may be changed."""
    for source in cluster.log_dir.glob("__remote_log_metadata-*"):
        shutil.copytree(source, folder / source.name)
    for name in ("meta.properties", "log-start-offset-checkpoint"):
        shutil.copy(cluster.log_dir / name, folder)
    return folder
