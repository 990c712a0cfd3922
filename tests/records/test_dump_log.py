"""Records are those that kafka-dump-log prints; tests/records/test_against_kafka.py asks the classes that it uses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.records.captured_topics import captured_records
from tests.records.kafka_records import rows_of
from tests.rigs.driven_brokers import jars_of
from tests.rigs.tools import dump_log
from tieredctl.ports.layout import Part

pytestmark = pytest.mark.integration
_RECORD = re.compile(
    r"\| offset: (\d+) (?:CreateTime|LogAppendTime): (-?\d+) keySize: (-?\d+) valueSize: (-?\d+) .*?"
    r"headerKeys: \[([^]]*)\](?: key: (\S*))?(?: payload: (.*))?"
)
SHOWN = 4
"""How many segments are shown to the tool: it starts a Java process for each."""


def test_what_dump_log_prints_is_what_is_read(captures: Path, tmp_path: Path) -> None:
    capture, compared = captures / "aiven-zstd-encrypted-4.3.1", 0
    with captured_records(capture, "orders32") as opened:
        for partition in opened.partitions:
            rows = {row[0]: row for row in rows_of(opened.read(partition))}
            for span in partition.spans[:SHOWN]:
                log = tmp_path / f"{span.segment.start_offset:020}.log"
                log.write_bytes(opened.layout.open_segment(opened.store, span.segment).read(Part.LOG))
                for line in dump_log(jars_of("4.3.1"), log, "--print-data-log").splitlines():
                    if line.startswith("| "):
                        assert (printed := _RECORD.fullmatch(line)), line
                        assert printed.groups() == _as_printed(rows[int(printed[1])])
                        compared += 1
    assert compared > 10


def _as_printed(row: tuple[Any, ...]) -> tuple[str | None, ...]:
    offset, timestamp, _, key, value, headers = row[:6]
    sizes = (str(-1 if one is None else len(one)) for one in (key, value))
    texts = (None if one is None else one.decode() for one in (key, value))
    return (str(offset), str(timestamp), *sizes, ",".join(name for name, _ in headers), *texts)
