"""The commands that remove from a captured control plane's bucket."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tests.cli.command_line import Outcome, Tieredctl
from tests.rigs.inkless import Inkless
from tieredctl.ports.object_store import RESERVED_FOLDER

CLUSTER = ("--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg")
ENOUGH = ("--max-percent", "50")
HOUR = 3600
COLUMNS = "object_key, format, reason, state, uploader_broker_id, committed_at, size"


@dataclass(frozen=True)
class Removal:
    """A captured control plane and bucket, and the commands that remove from it."""

    inkless: Inkless
    run: Tieredctl
    plan_file: Path

    def plan(self, *words: str, min_age: str = "1h") -> Outcome:
        places = self.inkless.places
        share = () if ENOUGH[0] in words else ENOUGH
        words = ("--to", str(self.plan_file), "--min-age", min_age, *share, *CLUSTER, *places, *words)
        return self.run("diskless", "orphans", "plan", *words)

    def apply(self, *words: str) -> Outcome:
        words = (str(self.plan_file), *self.inkless.control_plane, "--yes", *CLUSTER, *words)
        return self.run("diskless", "orphans", "apply", *words)

    def restore(self, *words: str) -> Outcome:
        return self.run("diskless", "orphans", "restore", f"{self.plan_file}.receipts", *words)

    def purge(self, *words: str) -> Outcome:
        words = ("--older-than", "0s", "--allow-young", *ENOUGH, "--yes", *CLUSTER, *self.inkless.places, *words)
        return self.run("diskless", "orphans", "purge", *words)

    def planned(self) -> set[str]:
        lines = map(json.loads, self.plan_file.read_text().splitlines())
        return {line["key"] for line in lines if "key" in line}

    def objects(self) -> set[str]:
        """Of the bucket's objects, without tieredctl's own."""
        files = (path.relative_to(self.inkless.bucket) for path in self.inkless.bucket.rglob("*") if path.is_file())
        return {str(path) for path in files if not str(path).startswith(RESERVED_FOLDER)}

    def own_files(self) -> dict[str, bytes]:
        folder = self.inkless.bucket / RESERVED_FOLDER
        return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    @property
    def left_behind(self) -> set[str]:
        roles = self.inkless.capture.document["roles"]
        return {roles["orphan_broker_killed"], roles["orphan_database_down"], *roles["deleting_object_present"]}

    def commit(self, key: str) -> None:
        """As a broker does whose upload waited: its file, and a batch in it."""
        self.inkless.run(
            f"INSERT INTO files ({COLUMNS}) VALUES ('{key}', 1, 'produce', 'uploaded', 1, now(), 815)",
            "INSERT INTO batches (magic, topic_id, partition, base_offset, last_offset, file_id, byte_offset, "
            "byte_size, timestamp_type, log_append_timestamp, batch_max_timestamp)"
            " SELECT 2, topic_id, partition, high_watermark, high_watermark, (SELECT max(file_id) FROM files), 0, 815,"
            " 0, 0, 0 FROM logs WHERE topic_name = 'orders' AND partition = 1",
            "UPDATE logs SET high_watermark = high_watermark + 1, byte_size = byte_size + 815"
            " WHERE topic_name = 'orders' AND partition = 1",
        )
