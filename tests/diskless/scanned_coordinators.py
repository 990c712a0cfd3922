"""Two diskless coordinators' logs and their bucket, and what a scan says of it."""

from __future__ import annotations

from pathlib import Path

from tieredctl_proposals.model.diskless_records import RecordsDeleted

from tests.cli.command_line import Outcome, Tieredctl
from tests.diskless.coordinator_logs import HOUR_MS, NOON_MS, committed, created, key, put, write_log
from tests.diskless_records import TOPIC_ID

LONG_AGO = NOON_MS - 30 * HOUR_MS
LOGS_BEGIN = LONG_AGO - HOUR_MS
LIVE, KNOWN_TO_THE_OTHER, DEAD, UNKNOWN, YOUNG = map(key, range(1, 6))

RECORDS = {
    0: [
        (LOGS_BEGIN, created()),
        (NOON_MS - 1, committed(3, 0, 9)),
        (NOON_MS, committed(1, 10, 19)),
        (NOON_MS + 1, RecordsDeleted(topic_id=TOPIC_ID, partition=0, log_start_offset=10)),
    ],
    1: [(LOGS_BEGIN, created(1)), (NOON_MS + 2 * HOUR_MS, committed(2, 0, 4, 1, owners=(1,)))],
}
"""Of each coordinator, with their times."""


class Cluster:
    """Two coordinators, each with a live file, and a bucket with an orphan."""

    def __init__(self, folder: Path) -> None:
        self.logs, self.bucket = folder / "logs", folder / "bucket"
        for coordinator, records in RECORDS.items():
            write_log(self.logs, coordinator, records)
        for name, modified_ms in (
            (LIVE, NOON_MS),
            (KNOWN_TO_THE_OTHER, NOON_MS + 2 * HOUR_MS),
            (DEAD, LONG_AGO),
            (UNKNOWN, LONG_AGO),
            (YOUNG, NOON_MS - 23 * HOUR_MS),
        ):
            put(self.bucket, name, modified_ms)

    def scan(self, tieredctl: Tieredctl, *more: str, coordinators: int | None = 2) -> Outcome:
        count = () if coordinators is None else ("--coordinators", str(coordinators))
        places = ("--log-dir", str(self.logs), "--store", f"file:{self.bucket}", *count)
        return tieredctl("diskless", "orphans", "scan", *places, *(more or ("-o", "jsonl")))


def statuses(outcome: Outcome) -> dict[str, str]:
    return {item["key"]: item["status"] for item in outcome.lines()}
