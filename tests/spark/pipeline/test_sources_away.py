"""What sources or clock do not tell in one run is neither forgotten nor taken for gone: no row is twice or lost."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from tieredctl_spark.jobs import backfill
from tieredctl_spark.tables.files import read_rows
from tieredctl_spark.tables.table_store import TablesPlace, demand_current

from tests.spark.pipeline.captured_pipeline import CapturedPipeline
from tieredctl.errors import ExitCode
from tieredctl.process import steady_time

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

YEARS_MS = 2 * 365 * 86_400_000


@pytest.fixture
def copied(kafka_4: Path, tmp_path: Path) -> CapturedPipeline:
    """With a log directory of its own."""
    data = Path(shutil.copytree(kafka_4 / "data", tmp_path / "data"))
    return CapturedPipeline(data, kafka_4 / "remote/kafka-tiered-storage", "local", tmp_path / "tables")


def times_of_events(pipeline: CapturedPipeline) -> Counter[tuple[int, int]]:
    """How often each event is there."""
    rows = pipeline.rows("events").to_pylist()
    return Counter((row["metadataPartition"], row["metadataOffset"]) for row in rows)


def test_a_metadata_partition_that_was_away_is_not_read_again(copied: CapturedPipeline, tmp_path: Path) -> None:
    assert copied.run()[0] == ExitCode.CLEAN
    whole = times_of_events(copied)
    away = shutil.move(copied.data / "__remote_log_metadata-0", tmp_path / "away")

    assert copied.run()[0] == ExitCode.INCOMPLETE
    shutil.move(away, copied.data / "__remote_log_metadata-0")
    code, summary = copied.run()

    assert (code, summary["news"]) == (ExitCode.CLEAN, True)
    assert times_of_events(copied) == whole
    assert any(number == 0 for number, _ in whole)
    assert set(whole.values()) == {1}


@pytest.mark.parametrize("number", [0, 3])
def test_a_topics_history_has_not_ended_where_a_metadata_partition_is_away(
    copied: CapturedPipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    words = [*copied.places, "--topic", "orders7", "--output", str(copied.tables)]
    assert backfill.main(words) == ExitCode.CLEAN
    whole = read_rows(str(copied.tables), "records").num_rows
    away = shutil.move(copied.data / f"__remote_log_metadata-{number}", tmp_path / "away")
    capsys.readouterr()

    assert backfill.main(words) == ExitCode.INCOMPLETE
    unread = json.loads(capsys.readouterr().out)["summary"]["unread"]
    shutil.move(away, copied.data / f"__remote_log_metadata-{number}")
    code = backfill.main(words)

    assert (code, read_rows(str(copied.tables), "records").num_rows) == (ExitCode.CLEAN, whole)
    assert unread
    assert all(f"metadata partition {number} is missing here" in why for why in unread.values())


def test_ids_that_sources_do_not_tell_for_once_are_known_after_it(copied: CapturedPipeline, tmp_path: Path) -> None:
    copied.run()
    tables = TablesPlace.given(str(copied.tables), {}).open()
    known = demand_current(tables).looked
    properties = copied.data / "meta.properties"
    text = properties.read_text()
    hidden = [properties, *copied.data.rglob("partition.metadata"), copied.data / "__cluster_metadata-0"]
    for number, one in enumerate(hidden):
        shutil.move(one, tmp_path / str(number))

    copied.run("--list-every", "0s")

    after = demand_current(tables).looked
    assert known.cluster_id is not None
    assert (after.cluster_id, after.metadata_topic_id) == (known.cluster_id, known.metadata_topic_id)
    properties.write_text(text.replace("cluster.id=", "cluster.id=A"))
    code, sentence = copied.refused("--list-every", "0s")
    assert (code, f"are of cluster {known.cluster_id}" in sentence) == (ExitCode.USAGE, True)


def test_a_clock_that_is_ahead_for_one_run_lets_no_event_go(
    copied: CapturedPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied.run()
    whole = times_of_events(copied)

    with monkeypatch.context() as patched:
        now_ms = steady_time.now_ms
        patched.setattr(steady_time, "now_ms", lambda: now_ms() + YEARS_MS)
        copied.run()
    assert times_of_events(copied) == whole

    _, summary = copied.run()  # once it is right, the store is not taken for listed two years from now
    assert summary["news"]
    assert times_of_events(copied) == whole
