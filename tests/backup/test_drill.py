"""The drill: three brokers and their disks are lost, and come back from the bucket, with a backup set or without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.backup.drill import (
    CLICKS,
    FAR,
    FOUR,
    GONE,
    GROUPS,
    NOTES,
    ORDERS,
    SECONDS,
    TRIMMED,
    TWELVE,
    Drill,
    Topics,
    alter_topic,
    both,
    commit,
    committed,
    demand_same_rows,
    new_drill,
    objects,
    produce_one_each,
    producing,
)
from tests.cli.command_line import this_process
from tests.rigs.topics import known_topics, topic_ids
from tests.rigs.waiting import wait_until
from tieredctl.errors import ExitCode

pytestmark = pytest.mark.integration

RELEASES = [
    pytest.param("4.3.1", FOUR, id="4.3.1"),
    *(
        pytest.param(release, FOUR, id=release, marks=pytest.mark.exhaustive(f"three brokers of {release}"))
        for release in ("3.9.1", "4.4.0")
    ),
]
LARGE = pytest.param(
    "4.3.1",
    TWELVE,
    id="4.3.1 with twelve topics",
    marks=pytest.mark.exhaustive("three brokers of 4.3.1, twelve topics"),
)


@pytest.fixture
def drill(release: str, topics: Topics, tmp_path: Path) -> Iterator[Drill]:
    with new_drill(release, topics, tmp_path) as drill:
        yield drill


@pytest.mark.parametrize(("release", "topics"), [*RELEASES, LARGE])
def test_a_cluster_that_lost_all_disks_comes_back_with_every_record_of_its_bucket(drill: Drill) -> None:
    if GONE in drill.topics:
        drill.produce_into(GONE, TRIMMED)
    drill.topics = {name: one for name, one in drill.topics.items() if name != GONE}
    with producing(drill):
        wait_until(drill.are_all_tiered, "segments are copied", SECONDS)
        commit(drill.server, orders=3, clicks=FAR)
        sets = [drill.backup()]
        if TRIMMED in drill.topics:
            drill.delete_topic_and_records()
        ids = topic_ids(drill.server, drill.topics)
        sets.append(drill.backup())
        known = drill.copied()
        wait_until(lambda: len(drill.copied() - known) > 6, "segments are copied that no set knows", SECONDS)
        drill.end_expiry()
    before = both(drill)
    drill.lose_disks()

    plan = drill.come_back()

    assert GONE not in {topic for topic, _ in plan}
    assert [one.exit_code for one in sets] == [ExitCode.CLEAN] * 2, [one.err for one in sets]
    assert this_process("backup", "verify", "--from", f"file:{drill.sets}").exit_code == ExitCode.CLEAN
    assert topic_ids(drill.server, drill.topics) == ids
    assert GONE not in known_topics(drill.server)
    assert sum(one["recovered"] for one in plan.values()) > 6
    assert plan[NOTES, 0]["origin"] == "backup"
    assert all(one["logStartOffset"] > 0 for (topic, _), one in plan.items() if topic == TRIMMED)
    demand_same_rows(drill.topics, before, both(drill), plan)
    cut = {ORDERS: 3, CLICKS: plan[CLICKS, 0]["nextOffset"]}
    assert committed(drill.server, ORDERS, CLICKS) == [cut] * len(GROUPS)

    produced = produce_one_each(drill)
    assert produced == {place: one["nextOffset"] for place, one in plan.items()}
    tiered = {place for place in produced if place[0] in drill.tiered()}
    wait_until(lambda: _copied_places(drill, produced) >= tiered, "new segments are copied", SECONDS)
    verified = this_process(
        *("verify", "--bootstrap-server", drill.server, "--store", f"file:{drill.first.remote_dir}"),
        *("--level", "full"),
    )
    assert verified.exit_code == ExitCode.CLEAN, verified.err

    with producing(drill):
        drill.end_expiry()
    assert drill.backup().exit_code == ExitCode.CLEAN
    before = both(drill)
    drill.lose_disks()

    plan = drill.come_back()

    demand_same_rows(drill.topics, before, both(drill), plan)


@pytest.mark.parametrize(("release", "topics"), RELEASES)
def test_without_a_backup_every_record_of_the_bucket_comes_back_and_no_object_goes(drill: Drill) -> None:
    drill.without_backup = True
    with producing(drill):
        wait_until(lambda: len(drill.copied()) > 12, "segments are copied", SECONDS)
        drill.end_expiry()
    drill.topics = {name: one for name, one in drill.topics.items() if name in drill.tiered()}
    ids = topic_ids(drill.server, drill.topics)
    before = both(drill)
    drill.lose_disks()
    bucket = objects(drill.first.remote_dir)

    plan = drill.come_back()

    assert topic_ids(drill.server, drill.topics) == ids
    assert {topic for topic, _ in plan} == {*drill.topics}
    demand_same_rows(drill.topics, before, both(drill), plan)
    produced = produce_one_each(drill)
    assert produced == {place: one["nextOffset"] for place, one in plan.items()}
    roll_soon(drill)

    def are_copied() -> bool:
        produce_one_each(drill)  # a leader rolls a segment when the next record comes, once it knows the setting
        return _copied_places(drill, produced) >= {*produced}

    wait_until(are_copied, "new segments are copied", SECONDS)
    verified = this_process(
        *("verify", "--bootstrap-server", drill.server, "--store", f"file:{drill.first.remote_dir}"),
        *("--level", "full"),
    )
    assert verified.exit_code == ExitCode.CLEAN, verified.err
    assert objects(drill.first.remote_dir).items() >= bucket.items()


def roll_soon(drill: Drill) -> None:
    """Gives the topics the one setting that is needed to see new segments copied: theirs are unknown."""
    for topic in drill.topics:
        alter_topic(drill.server, topic, "segment.ms", "400")


def _copied_places(drill: Drill, produced: Mapping[tuple[str, int], int]) -> set[tuple[str, int]]:
    return {(topic, number) for topic, number, end in drill.copied() if end >= produced[topic, number]}
