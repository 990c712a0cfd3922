"""Where things are, as values."""

from __future__ import annotations

import pickle
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.metadata_logs import metadata_batches, started, write_log
from tests.refusals import refused_with
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.metadata.as_of import AsOf
from tieredctl.wiring.listing_place import ListingPlace
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, PluginSource, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace

LIVE = ClusterPlace("broker:9092", Path("client.properties"))
FILE = Path("file")
ACME = PluginSource("acme", "db-1:5432/metadata", {"user": "reader"})
YESTERDAY = AsOf(timestamp_ms=1)


def test_a_place_can_be_sent_elsewhere_and_opens_nothing_by_being_made() -> None:
    for place in (
        LIVE,
        MetadataPlace((FILE, Path("other"))),
        MetadataPlace(cluster=LIVE, as_of=YESTERDAY),
        MetadataPlace(export=FILE),
        MetadataPlace(plugin=ACME),
        StorePlace("s3://tiered/prod", {"region": "eu-west-1"}, "aiven", {"prefix": "p/"}),
        TopicsPlace(topic_ids=FILE),
        TopicsPlace(cluster=LIVE),
        ListingPlace(inventory="s3://lists/manifest.json"),
    ):
        assert pickle.loads(pickle.dumps(place)) == place


def test_metadata_is_in_one_place() -> None:
    sources: dict[str, Any] = {"log_dirs": (FILE,), "cluster": LIVE, "export": FILE, "plugin": ACME}
    for one, other in combinations(sources, 2):
        with refused_with(ErrorCode.USAGE, (one, other)):
            MetadataPlace(**{one: sources[one], other: sources[other]})


def test_metadata_that_is_nowhere_is_reported_when_it_is_opened() -> None:
    nowhere = MetadataPlace()

    with refused_with(ErrorCode.NO_SOURCE), nowhere.open():
        pass
    assert not nowhere.is_given


def test_topics_are_asked_of_the_cluster_whose_metadata_it_is_but_not_about_the_past() -> None:
    assert TopicsPlace.beside(MetadataPlace(cluster=LIVE)) == TopicsPlace(cluster=LIVE)
    assert TopicsPlace.beside(MetadataPlace(cluster=LIVE, as_of=YESTERDAY)) == TopicsPlace()
    assert TopicsPlace.beside(MetadataPlace((FILE,))) == TopicsPlace()
    assert TopicsPlace.beside(MetadataPlace((FILE,)), topic_ids=FILE) == TopicsPlace(topic_ids=FILE)


def test_a_list_of_ids_may_tell_of_the_past_of_a_live_cluster() -> None:
    past = MetadataPlace(cluster=LIVE, as_of=YESTERDAY)

    assert TopicsPlace.beside(past, topic_ids=FILE) == TopicsPlace(topic_ids=FILE)
    with pytest.raises(TieredctlError, match="--kraft-snapshot is for a cluster that is down"):
        TopicsPlace.beside(past, snapshot=FILE)


def test_a_topics_id_today_is_not_asked_about_the_past() -> None:
    assert MetadataPlace(cluster=LIVE, as_of=YESTERDAY).topic_id_today("orders") is None


def test_the_events_of_one_metadata_partition_are_opened_where_it_is_here(tmp_path: Path) -> None:
    write_log(tmp_path, 3, metadata_batches([started(1, 0, 9)]))
    place = MetadataPlace((tmp_path,))

    with place.open(3) as stream:
        events = [record.event for record in stream.records()]

    assert len(events) == 1
    with pytest.raises(TieredctlError, match="no metadata partition 2 here; found 3"), place.open(2):
        pass


def test_a_store_that_was_opened_to_look_has_nothing_to_change_it_by(tmp_path: Path) -> None:
    place = StorePlace(f"file:{tmp_path}", layout="local")

    assert not hasattr(place.open().store, "write")
    assert hasattr(place.open_writable().store, "write")
    assert list(tmp_path.iterdir()) == []
