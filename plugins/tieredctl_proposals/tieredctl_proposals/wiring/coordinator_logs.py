"""Where diskless coordinators' logs are, as a value, and what is read of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.live_listing import live_listing
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.wiring.places import StorePlace
from tieredctl_proposals.model.diskless_records import DISKLESS_METADATA_TOPIC
from tieredctl_proposals.ops.diskless.coordinator_answers import CoordinatorAnswers
from tieredctl_proposals.ops.diskless.coordinator_logs import CoordinatorLogs
from tieredctl_proposals.ops.diskless.coordinator_scan import CoordinatorScan
from tieredctl_proposals.ops.diskless.logged_records import LoggedRecords


@dataclass(frozen=True, slots=True)
class CoordinatorLogsPlace:
    """Brokers' log directories that have partitions of `__diskless_metadata`."""

    log_dirs: tuple[Path, ...]
    coordinators: int | None = None
    """How many partitions it has, where nothing beside it may tell."""

    @contextmanager
    def open(self) -> Iterator[MetadataSource]:
        """Raises TieredctlError if a folder cannot be read or has none of them, and if they are of several clusters, or
        of several topics of that name."""
        with closing(LogDirectories(self.log_dirs, DISKLESS_METADATA_TOPIC)) as source:
            if len(source.topic_ids) > 1:
                message = f"These are logs of different topics named {DISKLESS_METADATA_TOPIC}: "
                message += f"{', '.join(sorted(source.topic_ids))}."
                hint = "Leave out those of the topic that was deleted; partition.metadata has the id."
                raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
            yield source


@contextmanager
def coordinator_records(
    place: CoordinatorLogsPlace, coordinator: int | None
) -> Iterator[tuple[Callable[[], Document], LoggedRecords]]:
    """Where they are, as far as they are read, and the records of all logs or one.

    Raises TieredctlError as the place does, and `usage` for a coordinator whose log is not here.
    """
    with place.open() as source:
        _demand_here(source, coordinator)
        yield source.describe, LoggedRecords(CoordinatorLogs(source, place.coordinators), coordinator)


@contextmanager
def coordinator_answers(
    place: CoordinatorLogsPlace, coordinator: int | None
) -> Iterator[tuple[Callable[[], Document], CoordinatorAnswers]]:
    """Where they are, as far as they are read, and the coordinators of all logs or one, ready to be asked once.

    Raises TieredctlError as `coordinator_records` does.
    """
    with place.open() as source, TemporaryDirectory(prefix="tieredctl-coordinators-") as folder:
        _demand_here(source, coordinator)
        logs = CoordinatorLogs.now(source, place.coordinators, place.log_dirs)
        with closing(CoordinatorAnswers(logs, Path(folder), coordinator)) as answers:
            yield source.describe, answers


@contextmanager
def scan_coordinators(
    place: CoordinatorLogsPlace, bucket: StorePlace, grace_ms: int
) -> Iterator[tuple[Callable[[], Document], CoordinatorScan]]:
    """Where they are, as far as they are read, and a scan by coordinators' logs that is ready to be run here.

    Raises TieredctlError as the places and `CoordinatorScan` do.
    """
    store = bucket.open_store()
    with place.open():
        pass  # what cannot be read is refused before anything is listed
    with live_listing(store) as listing, place.open() as source:
        scan = CoordinatorScan(store, listing, source, place.log_dirs, place.coordinators, grace_ms)
        yield lambda: source.describe() | {"store": store.url}, scan


def scan_logs(
    log_dirs: Sequence[Path], coordinators: int | None, bucket: StorePlace, grace_ms: int
) -> AbstractContextManager[tuple[Callable[[], Document], CoordinatorScan]]:
    """The entry point `coordinators` of the group `tieredctl_inkless.scans`. Raises TieredctlError as
    `scan_coordinators` does."""
    return scan_coordinators(CoordinatorLogsPlace(tuple(log_dirs), coordinators), bucket, grace_ms)


def _demand_here(source: MetadataSource, coordinator: int | None) -> None:
    here = source.metadata_partitions()
    if coordinator is not None and coordinator not in here:
        message = f"There is no log of coordinator {coordinator} here; found {', '.join(map(str, here))}."
        raise TieredctlError(ErrorCode.USAGE, message)
