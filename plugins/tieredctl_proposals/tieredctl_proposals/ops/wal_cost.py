"""What WAL tiering costs a month, against replication by followers: KIP-1176, "Appendix: Cost Estimate for a typical
workload".

The KIP prints a workload and four sums, and no calculation. The lines here are reconstructed: with the defaults they
give each of its sums to the dollar. What its sums do not include is a line too, which is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tieredctl.model.counted import counted
from tieredctl.model.result_row import JsonOnly, ResultRow, Wide
from tieredctl.ops.documents import Document
from tieredctl_proposals.model.wal_prices import WalPrices

_HOURS_A_MONTH = 30 * 24
_SECONDS_A_MONTH = _HOURS_A_MONTH * 3600
_HOUR_MS = 3_600_000
_GB = 10**9
_CENTS, _RATIO_DIGITS = 2, 4


@dataclass(frozen=True, slots=True)
class WalWorkload:
    """What one broker takes in, and how long what is kept. By default the KIP's workload, as far as it states it."""

    brokers: int = 90
    inbound_per_second: int = 31_100_000
    """Bytes. The KIP says 30 MB/s and 112 GB an hour, which contradict each other; its sums need this."""
    upload_interval_ms: int = 10
    upload_bytes: int | None = None
    """An object is uploaded after the interval, or sooner when it has this many bytes."""
    wal_retention_ms: int = _HOUR_MS
    local_retention_ms: int = 12 * _HOUR_MS
    """How long a follower keeps data on its disk. The KIP does not say; its sums need 12 hours."""
    followers_before: int = 2
    followers_after: int = 1
    """Those that read the objects instead of the leader."""

    @property
    def gb_per_hour(self) -> float:
        return self.inbound_per_second * 3600 / _GB

    @property
    def uploads_per_second(self) -> float:
        by_time = 1000 / self.upload_interval_ms
        return by_time if self.upload_bytes is None else max(by_time, self.inbound_per_second / self.upload_bytes)

    @property
    def object_bytes(self) -> float:
        """How many a combined object has on average."""
        return self.inbound_per_second / self.uploads_per_second


KIP_1176_WORKLOAD = WalWorkload()


@dataclass(frozen=True, slots=True)
class WalCostRow(ResultRow):
    """One cost of a broker for a month, or a sum; `counted` by the KIP, or left out."""

    group: JsonOnly[str]
    line: str
    before: float
    after: float
    counted: bool
    calculation: Wide[str]


@dataclass(frozen=True, slots=True)
class _Line:
    """One cost of a broker for a month; `counted` by the KIP, or left out."""

    group: str
    name: str
    before: float
    after: float
    calculation: str
    counted: bool = True

    def row(self) -> WalCostRow:
        before, after = round(self.before, _CENTS), round(self.after, _CENTS)
        return WalCostRow(self.group, self.name, before, after, self.counted, self.calculation)


@dataclass(frozen=True, slots=True)
class WalCost:
    """Each line, the KIP's sums, and what it leaves out."""

    rows: list[WalCostRow]
    summary: Document


def wal_cost(workload: WalWorkload, prices: WalPrices) -> WalCost:
    """What a broker costs a month before and after WAL tiering. Sums in the summary are rounded to a dollar, as the
    KIP's."""
    lines = [*_storage(workload, prices), *_transfer(workload, prices)]
    included = [line for line in lines if line.counted]
    total, everything = _sum("total", "Total Cost", included), _sum("total", "Total Cost with every line", lines)
    rows = [
        *_group("Storage/Instance Cost", [line for line in included if line.group == "storage"]),
        *_group("Transfer Cost", [line for line in included if line.group == "transfer"]),
        total.row(),
        *(line.row() for line in lines if not line.counted),
        replace(everything.row(), counted=False),
    ]
    summary = {
        "before": round(total.before),
        "after": round(total.after),
        "saving": _saving(total),
        "currency": "USD",
        "brokers": workload.brokers,
        "clusterBefore": round(total.before * workload.brokers),
        "clusterAfter": round(total.after * workload.brokers),
        "beforeWithEveryLine": round(everything.before),
        "afterWithEveryLine": round(everything.after),
        "savingWithEveryLine": _saving(everything),
        "uploadsPerSecond": round(workload.uploads_per_second, _CENTS),
        "objectBytes": round(workload.object_bytes),
        "gbPerHour": round(workload.gb_per_hour, _CENTS),
        "notes": list(_notes(workload, prices)),
    }
    return WalCost(rows, summary)


def _storage(workload: WalWorkload, prices: WalPrices) -> Iterator[_Line]:
    instance = _HOURS_A_MONTH * prices.instance_per_hour
    yield _Line("storage", "instance", instance, instance, f"{_HOURS_A_MONTH} h x {prices.instance_per_hour:g}")
    kept_gb = workload.gb_per_hour * workload.local_retention_ms / _HOUR_MS
    yield _Line(
        "storage",
        "followers' disks",
        kept_gb * workload.followers_before * prices.disk_per_gb_month,
        kept_gb * workload.followers_after * prices.disk_per_gb_month,
        f"{kept_gb:,.2f} GB x {_of_followers(workload)} x {prices.disk_per_gb_month:g}",
    )
    stored_gb = workload.gb_per_hour * workload.wal_retention_ms / _HOUR_MS
    price = prices.object_storage_per_gb_month
    yield _Line("storage", "object storage", 0, stored_gb * price, f"{stored_gb:,.2f} GB x {price:g}")


def _transfer(workload: WalWorkload, prices: WalPrices) -> Iterator[_Line]:
    gb = workload.gb_per_hour * _HOURS_A_MONTH
    across = gb * workload.followers_before * prices.cross_zone_per_gb
    followers = counted(workload.followers_before, "follower")
    across_said = f"{gb:,.2f} GB x {followers} x {prices.cross_zone_per_gb:g}"
    yield _Line("transfer", "replication across zones, one direction", across, 0, across_said)
    uploads = workload.uploads_per_second * _SECONDS_A_MONTH
    yield _Line("transfer", "write requests", 0, *_requests(uploads, prices.per_thousand_puts))
    charged_gb = uploads * max(0.0, workload.object_bytes - prices.free_bytes_per_request) / _GB
    uploaded = charged_gb * prices.upload_per_gb
    yield _Line("transfer", "upload", 0, uploaded, f"{charged_gb:,.2f} GB x {prices.upload_per_gb:g}")
    yield _Line("transfer", "replication across zones, other direction", across, 0, across_said, counted=False)
    reads = uploads * workload.followers_after
    yield _Line("transfer", "read requests", 0, *_requests(reads, prices.per_thousand_gets), counted=False)
    read_gb = charged_gb * workload.followers_after
    calculation = f"{read_gb:,.2f} GB x {prices.retrieval_per_gb:g}"
    yield _Line("transfer", "retrieval", 0, read_gb * prices.retrieval_per_gb, calculation, counted=False)


def _requests(requests: float, per_thousand: float) -> tuple[float, str]:
    return requests * per_thousand / 1000, f"{requests / 1000:,.0f} thousand x {per_thousand:g}"


def _of_followers(workload: WalWorkload) -> str:
    return f"{counted(workload.followers_before, 'follower')} before, {workload.followers_after} after"


def _group(name: str, lines: list[_Line]) -> Iterator[WalCostRow]:
    yield from (line.row() for line in lines)
    yield _sum(lines[0].group, name, lines).row()


def _sum(group: str, name: str, lines: list[_Line]) -> _Line:
    return _Line(group, name, sum(line.before for line in lines), sum(line.after for line in lines), "sum")


def _saving(total: _Line) -> float | None:
    """The saving by the sums as they are printed; None where there is nothing to save."""
    before, after = round(total.before), round(total.after)
    return round(1 - after / before, _RATIO_DIGITS) if before else None


def _notes(workload: WalWorkload, prices: WalPrices) -> Iterator[str]:
    """Where the KIP's arithmetic slips, or does not say what it counts."""
    if workload.inbound_per_second == KIP_1176_WORKLOAD.inbound_per_second:
        yield (
            "The KIP states 30 MB/s and about 112 GB an hour, but 30 MB/s are 108 GB an hour. Its sums need 31.1 MB/s; "
            "for 30 MB/s give --inbound 30MB."
        )
    if workload.local_retention_ms == KIP_1176_WORKLOAD.local_retention_ms:
        yield (
            "The KIP does not say what its storage and instance costs consist of. They agree with 12 hours on a paid "
            "disk for each follower, in addition to the instance, whose price already includes disks."
        )
    yield (
        "The KIP counts transfer between zones in one direction. AWS charges both, so replication costs twice as much "
        "where each follower is in another zone."
    )
    yield (
        "The KIP counts no read requests, though a follower needs at least one for each object; nor what "
        "__remote_wal_log_metadata takes, which is not a line here either."
    )
    if prices.free_bytes_per_request:
        yield (
            "S3 Express One Zone has had other prices since April 2025, and charges upload for every byte; "
            "give the prices of today in --price-file."
        )
