"""`snapshot fetch` from a scripted controller, and what it leaves in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Outcome
from tests.kraft_snapshots import snapshot_bytes, topic_record
from tests.rigs.scripted_controller import ScriptedController
from tieredctl.cli.main import run
from tieredctl.formats.record_batches import Record, encode_batch

TOPIC_ID = "AQIDBAUGBwgJCgsMDQ4PEA"
HEADER_BYTES, BATCH_BYTES, FOOTER_BYTES = 83, 211, 75


def snapshot_of(timestamp: int) -> bytes:
    """As a controller writes it that begins at this time: a header, eight batches, a footer."""
    topics = [topic_record(TOPIC_ID, f"t{number}") for number in range(40)]
    whole = snapshot_bytes(timestamp, *topics)
    records = [Record(1 + number, timestamp, None, topic) for number, topic in enumerate(topics)]
    batches = [encode_batch(records[first : first + 5], partition_leader_epoch=1) for first in range(0, 40, 5)]
    return b"".join((whole[:HEADER_BYTES], *batches, whole[-FOOTER_BYTES:]))


SNAPSHOT, OTHER_SNAPSHOT = snapshot_of(1700000000000), snapshot_of(1700000000001)
NAME = "00000000000000000047-0000000005.checkpoint"
CLEAN, FAILED, USAGE, CORRUPTION, LOCKED, INTERRUPTED = 0, 1, 2, 4, 11, 130
CHUNK = 100


class Fetch:
    """Runs the command for one controller, and looks at what it left."""

    def __init__(self, controller: ScriptedController, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self._controller, self._folder, self._capfd = controller, folder, capfd
        self._config = folder.parent / "client.properties"
        self.be_patient(30_000)

    def be_patient(self, milliseconds: int) -> None:
        self._config.write_text(f"request.timeout.ms={milliseconds}\n")

    def __call__(self, *words: str | Path, address: str | None = None) -> Outcome:
        self._capfd.readouterr()
        usual = {
            "--bootstrap-controller": address or self._controller.address,
            "--command-config": self._config,
            "--to": self._folder,
            "--max-bytes": CHUNK,
        }
        given = (word for option in usual.items() if option[0] not in words for word in option)
        code = run([*map(str, ("snapshot", "fetch", *given, *words))])
        return Outcome(code, *self._capfd.readouterr())

    def left(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self._folder.iterdir()}


def part_name(file: str = NAME, controller: int = 1) -> str:
    return f"{file}.47-5.controller-{controller}.part"
