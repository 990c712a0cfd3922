"""In which order a verb reads, through the door that the command line, Spark's jobs and notebooks share."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.spark.damage import REMOTE, damaged
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.clock import Clock
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.documents import Document
from tieredctl.ops.orphan_removal.limits import PlanOptions
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.ports.object_store import ObjectStore, is_reserved
from tieredctl.wiring.listing_place import ListingPlace
from tieredctl.wiring.orphans import ScanPlaces, opened_scan, write_plan
from tieredctl.wiring.places import MetadataPlace, Remote, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace
from tieredctl.wiring.verify import verify

METADATA, STORE, TOPICS, OBJECTS = "metadata is read", "store is listed", "topics are asked", "objects are asked for"
NOW_MS, LONG_MS = 4_000_000_000_000, 2**40


@dataclass(frozen=True)
class Noted:
    """Something else, of which some methods are noted when they are called, what follows another once; but for what
    tieredctl keeps in a store for itself."""

    it: Any
    order: list[str]
    names: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.it, name)
        return partial(self._noted, method, self.names[name]) if name in self.names else method

    def _noted(self, method: Callable[..., Any], name: str, *arguments: Any) -> Any:
        answer = method(*arguments)
        if any(isinstance(one, str) and is_reserved(one) for one in arguments):
            return answer
        if isinstance(answer, Iterator):
            return self._noted_when_read(answer, name)
        self._note(name)
        return answer

    def _noted_when_read(self, answer: Iterator[Any], name: str) -> Iterator[Any]:
        self._note(name)
        yield from answer

    def _note(self, name: str) -> None:
        if self.order[-1:] != [name]:
            self.order.append(name)


@dataclass(frozen=True)
class NotedMetadata(MetadataPlace):
    order: list[str] = field(default_factory=list)

    def open_source(self) -> MetadataSource:
        source: MetadataSource = Noted(super().open_source(), self.order, {"chunks": METADATA})
        return source


@dataclass(frozen=True)
class NotedStore(StorePlace):
    order: list[str] = field(default_factory=list)

    def open(self) -> Remote[ObjectStore]:
        store, layout = super().open()
        return Remote(Noted(store, self.order, {"list": STORE, "head": OBJECTS}), layout)


class AllAreLive:
    """A cluster that has every topic it is asked about."""

    def ask(self, topic_ids: Collection[str]) -> Mapping[str, bool | None]:
        return dict.fromkeys(topic_ids, True)

    def describe(self) -> Document:
        return {"kind": "model"}


@dataclass(frozen=True)
class NotedTopics(TopicsPlace):
    order: list[str] = field(default_factory=list)

    @contextmanager
    def open(self, now_ms: int) -> Iterator[TopicSources]:
        yield TopicSources(cluster=Noted(AllAreLive(), self.order, {"ask": TOPICS}))


@dataclass(frozen=True)
class Places:
    """A captured cluster; what is read there is noted in one list."""

    cluster: Path
    order: list[str] = field(default_factory=list)

    def metadata(self) -> MetadataPlace:
        return NotedMetadata((self.cluster / "data",), order=self.order)

    def store(self) -> StorePlace:
        return NotedStore(f"file:{self.cluster / REMOTE}", layout="local", order=self.order)

    def topics(self) -> TopicsPlace:
        return NotedTopics(order=self.order)

    def to_scan(self, listing: ListingPlace | None = None) -> ScanPlaces:
        return ScanPlaces(self.metadata(), self.store(), self.topics(), listing or ListingPlace())


@pytest.fixture
def places(captures: Path, tmp_path: Path) -> Places:
    return Places(damaged(captures / "kafka-4.3.1", tmp_path))


WHILE_IT_RAN = 1_795_252_470
"""After the first event of each metadata partition of the capture, and before the last."""


def with_an_orphan(places: Places) -> Path:
    """Adds a file of a segment that no event names, in a folder of one that is known."""
    log = next((places.cluster / REMOTE).glob("orders7-1-*/*.log"))
    orphan = log.with_name("00000000000000000077-AAAAAAAAAAAAAAAAAAAAAQ.log")
    orphan.write_bytes(b"x")
    os.utime(orphan, (WHILE_IT_RAN, WHILE_IT_RAN))
    return orphan


def test_verify_lists_the_store_after_the_metadata_and_confirms_what_it_found(places: Places) -> None:
    options = VerifyOptions(Level.LISTING, Clock(NOW_MS, LONG_MS))

    verified = verify(places.metadata(), places.store(), options, topics=places.topics())

    assert verified.result.findings
    assert places.order[:3] == [METADATA, TOPICS, STORE]
    assert METADATA in places.order[3:]


def test_verify_reads_local_logs_before_the_metadata(places: Places) -> None:
    seen: list[bool] = []

    @dataclass(frozen=True)
    class TrimmedBeforeItIsRead(MetadataPlace):
        """A running broker, which trims a local log after it has written to the metadata topic."""

        def open_source(self) -> MetadataSource:
            for log in (places.cluster / "data" / "orders7-0").glob("*.log"):
                seen.append(True)
                log.unlink()
            return super().open_source()

    def findings_of(place: type[MetadataPlace]) -> list[Finding]:
        options = VerifyOptions(Level.LISTING, Clock(NOW_MS, LONG_MS))
        return verify(place((places.cluster / "data",)), places.store(), options).result.findings

    whole = findings_of(MetadataPlace)
    trimmed = findings_of(TrimmedBeforeItIsRead)

    assert seen
    assert trimmed == whole


WITH_PROMISES = [STORE, METADATA, TOPICS, OBJECTS, METADATA, OBJECTS, METADATA, STORE]
"""Where a promised object is missing: it is asked for by name, and whether it is promised is asked again, twice."""


def test_a_scan_lists_the_store_first_and_asks_for_orphans_and_promises_again(places: Places) -> None:
    orphan = with_an_orphan(places)

    with opened_scan(places.to_scan(), ScanOptions(NOW_MS, 0)) as opened:
        orphans = [one["key"] for one in opened.scan.documents() if one["status"] == "orphan"]

    assert [Path(key).name for key in orphans] == [orphan.name]
    assert places.order == WITH_PROMISES


def test_what_stands_for_a_store_is_not_asked_again_by_a_scan(places: Places, tmp_path: Path) -> None:
    orphan = with_an_orphan(places)
    keys = tmp_path / "keys"
    keys.write_text(f"{orphan.relative_to(places.cluster / REMOTE)}\n")

    with opened_scan(places.to_scan(ListingPlace(key_list=keys)), ScanOptions(NOW_MS, 0)) as opened:
        opened.scan.run()
        unlisted = opened.noncurrent()

    assert OBJECTS not in places.order
    assert STORE not in places.order
    assert unlisted is None


def test_a_plan_is_made_of_a_scan_in_the_same_order(places: Places, tmp_path: Path) -> None:
    with_an_orphan(places)
    options = PlanOptions(plan_id="plan", cluster_id=None, max_percent=100, max_missing=1, allow_young=True)

    written = write_plan(places.to_scan(), ScanOptions(NOW_MS, 0), options, tmp_path / "plan.jsonl", lambda: NOW_MS)

    assert written.totals.objects == 1
    assert places.order == WITH_PROMISES


REFUSED: list[Callable[[Places], object]] = [
    lambda places: verify(places.metadata(), places.store(), VerifyOptions(Level.LISTING, Clock(NOW_MS, LONG_MS))),
    lambda places: opened_scan(places.to_scan(), ScanOptions(NOW_MS, 0)).__enter__(),
]


@pytest.mark.parametrize("verb", REFUSED, ids=["verify", "scan"])
def test_metadata_that_is_not_the_clusters_is_refused_before_the_store_is_listed(
    places: Places, verb: Callable[[Places], object]
) -> None:
    properties = places.cluster / "server.properties"
    properties.write_text("remote.log.metadata.manager.class.name=com.example.Manager\n")

    with pytest.raises(TieredctlError, match=r"com\.example\.Manager") as refused:
        verb(places)

    assert refused.value.code is ErrorCode.OTHER_METADATA_MANAGER
    assert places.order == []
