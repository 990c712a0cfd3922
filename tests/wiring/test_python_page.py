"""What docs/python.md shows runs as it stands there, and finds what the command line finds."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.command_line import REPOSITORY, own_process
from tests.cli.crashed_cluster import LONG_AGO
from tests.spark.damage import REMOTE, damaged

PAGE = REPOSITORY / "docs" / "python.md"
DELETED = "events7-0-5_2hUucOSiuBES5fbXncQw/00000000000000000000-o32mt9H9R4i1SSwsKP7_VA.log"
"""Of a segment of the capture that is in DELETE_SEGMENT_FINISHED."""


RECORDS = "## Records as Arrow\n"
"""Of what is damaged they would raise."""


def exec_page(text: str) -> None:
    source = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    exec(compile(source, str(PAGE), "exec"), {})


@pytest.fixture
def cluster(captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A damaged cluster in the current folder, with an object that its deleted segment left: its log directory is
    `data`, its store `remote`."""
    copy = damaged(captures / "kafka-4.3.1", tmp_path)
    folder = tmp_path / "cluster"
    folder.mkdir()
    (copy / "data").rename(folder / "data")
    (copy / REMOTE).rename(folder / "remote")
    orphan = folder / "remote" / DELETED
    orphan.write_bytes(b"x")
    os.utime(orphan, (LONG_AGO, LONG_AGO))
    monkeypatch.chdir(folder)
    return folder


def test_the_page_shows_what_the_command_line_does(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec_page(PAGE.read_text().partition(RECORDS)[0])
    *found, verdict, orphans, segment = capsys.readouterr().out.splitlines()

    where = ("--log-dir", "data", "--store", "file:remote", "--layout", "local")
    verified = own_process("verify", *where, "-o", "json")
    scanned = own_process("orphans", "scan", *where, "-o", "json")
    looked_up = own_process(
        "metadata", "lookup", "orders7:0", "--epoch", "0", "--offset", "5", "--log-dir", "data", "-o", "json"
    )
    items = verified.document()["items"]
    assert found == [f"{one['code']} {one['subject']} {one['message']}" for one in items]
    assert len(found) > 5
    assert verdict == f"{verified.document()['summary']['segments']} CORRUPTION"
    scan = scanned.document()["summary"]
    assert orphans == f"{scan['status']['orphan']['objects']} {scan['complete']}" == "1 False"  # promised ones are gone
    assert segment == looked_up.document()["items"][0]["segmentId"]


def test_the_page_reads_the_records_that_the_command_line_does(
    captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").symlink_to(captures / "kafka-4.3.1/data")
    (tmp_path / "remote").symlink_to(captures / "kafka-4.3.1" / REMOTE)
    monkeypatch.chdir(tmp_path)
    places, _, _ = PAGE.read_text().partition("Metadata may also be")

    exec_page(places + PAGE.read_text().partition(RECORDS)[2])
    *partitions, most = capsys.readouterr().out.splitlines()

    where = ("--log-dir", "data", "--store", "file:remote", "--layout", "local", "-o", "jsonl")
    read = own_process("remote", "records", "orders7:0", *where)
    keys = [json.loads(line)["key"] for line in read.out.splitlines()]
    assert len(partitions) > 2
    assert most == str(max(map(keys.count, filter(None, keys))))
