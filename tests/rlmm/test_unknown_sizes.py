"""A segment to which the metadata gives a negative size, which Kafka takes: its size is unknown, never negative."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, this_process
from tests.metadata_logs import PARTITION, copied, segment_id, started, write_events
from tieredctl.model.clock import Clock
from tieredctl.model.size_sum import SizeSum
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.monitoring.topic_figures import topic_figures
from tieredctl.rlmm.cache import bytes_from
from tieredctl.wiring.places import MetadataPlace

NEGATIVE = re.compile(r"-[0-9.]+ ?([KMG]i)?B\b|-4096")


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    write_events(tmp_path, *copied(1, 0, 9), *copied(2, 10, 19, segment_size_in_bytes=-4096))
    return tmp_path


def asked(log_dir: Path, *words: str) -> Outcome:
    return this_process(*words, "--log-dir", str(log_dir))


def test_it_is_unknown_and_so_is_their_sum(log_dir: Path) -> None:
    document = asked(log_dir, "metadata", "segments", "-o", "json").document()

    assert [item["segmentSizeInBytes"] for item in document["items"]] == [1000, None]
    assert document["summary"]["bytes"] is None
    (found,) = document["summary"]["findings"]
    assert (found["code"], found["severity"]) == ("segment-size-unknown", "warning")
    assert found["evidence"]["segmentId"] == segment_id(2)


def test_every_output_of_segments_has_the_others_sizes_alone(log_dir: Path) -> None:
    for output in ("table", "wide", "json", "jsonl", "yaml", "csv"):
        outcome = asked(log_dir, "metadata", "segments", "-o", output)

        sizes = re.sub(r'"?segmentSizeInBytes"?: -4096', "", outcome.out, count=1)  # the finding's evidence
        assert outcome.exit_code == 3, output
        assert "-4096" not in sizes.replace("gives it -4096 bytes", ""), output
        assert "1000" in outcome.out, output


TABLES = (
    "metadata segments",
    "metadata segments --timeline",
    "metadata lookup t:0 --epoch 0 --offset 15",
    "metadata stats",
    "metadata epochs t:0",
    "explain t:0@15",
    "status",
)


def test_no_table_has_a_negative_size(log_dir: Path) -> None:
    for words in TABLES:
        outcome = asked(log_dir, *words.split())

        assert outcome.exit_code in (0, 3), (words, outcome.err)
        assert NEGATIVE.search(outcome.out) is None, words


def test_the_sum_of_a_cluster_is_the_least_that_it_has(log_dir: Path) -> None:
    table, document = asked(log_dir, "status"), asked(log_dir, "status", "-o", "json").document()

    assert "at least 1000 B of logs tiered" in table.out
    assert document["summary"]["tiered"]["remoteBytes"] is None
    assert table.exit_code == 3


def test_a_page_has_the_least_of_each_topic(log_dir: Path, tmp_path: Path) -> None:
    asked(log_dir, "status", "--report", str(tmp_path / "page.html"))

    page = (tmp_path / "page.html").read_text()
    assert "at least 1000 B" in page
    assert f"At least, of {PARTITION.topic}: the size of a segment is unknown." in page


def test_a_timelines_sum_is_the_least_that_it_has(log_dir: Path) -> None:
    outcome = asked(log_dir, "metadata", "segments", "--timeline")

    assert "2 segments, at least 1000 B" in outcome.out


def test_the_cost_of_a_topic_is_unknown_and_not_in_the_whole(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("prices:\n- {store: 'file:', perGiBMonth: 1048576, currency: EUR}\n")
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(config))
    words = ("estimate", "cost", "--store", f"file:{tmp_path}", "--layout", "local")

    table, document = asked(log_dir, *words), asked(log_dir, *words, "-o", "json").document()

    (row,) = document["items"]
    assert (row["bytes"], row["storageCost"], document["summary"]["bytes"]) == (None, None, None)
    assert document["summary"]["cost"] == 0.98
    assert "Not included: storage of 1 segment: the metadata does not have the size" in table.err
    assert "segment-size-unknown" in table.err
    assert table.exit_code == 3


def test_what_lies_from_an_offset_on_is_the_least_that_it_has() -> None:
    segments = [started(1, 0, 9), started(2, 10, 19, segment_size_in_bytes=-4096), started(3, 20, 29)]

    for offset in (0, 5, 10, 15):
        assert bytes_from(segments, offset) == SizeSum(1000 + max(0, 10 - offset) * 100, is_exact=False), offset
    assert bytes_from(segments, 20) == SizeSum(1000)


def test_the_exporter_has_no_sum_for_its_topic(log_dir: Path) -> None:
    with MetadataPlace(log_dirs=(log_dir,)).open() as stream:
        (figures,) = topic_figures(replayed(stream), None, Clock(1, 1))

    assert (figures.topic, figures.segments, figures.remote_bytes) == (PARTITION.topic, 2, None)
