"""The small tables of a day: of sums by topic, on the driver."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.prices import StoragePrice
from tieredctl.ops.cluster.topic_settings import RETENTION_MS
from tieredctl.ops.estimates.cost import TopicFigures, cost_row
from tieredctl.ports.cluster import Cluster
from tieredctl_spark.pipeline.retention import DAY_MS
from tieredctl_spark.pipeline.segments import Replayed
from tieredctl_spark.tables.due import day_of
from tieredctl_spark.tables.kinds import COPY_LAG_HOURLY, COST_DAILY, RETENTION_FORECAST

_FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
_HOUR_MS = 3_600_000
_EPOCH = date(1970, 1, 1)
LAG_COLUMNS = ("topic", "topicId", "state", "validFrom", "maxTimestamp")
"""Of the history of segments, what lags are made of."""


def costs(figures: Mapping[str, TopicFigures], price: StoragePrice | None, now_ms: int) -> pa.Table:
    """By `COST_DAILY.columns`; no rows where the price is not known."""
    ordered = sorted(figures.items(), key=lambda one: (one[1].name, one[0]))
    rows = [] if price is None else [cost_row(topic_id, one, price, now_ms).document() for topic_id, one in ordered]
    return pa.Table.from_pylist(rows, COST_DAILY.columns)


def forecast(replayed: Replayed) -> pa.Table:
    """By `RETENTION_FORECAST.columns`."""
    rows = [
        {
            "topic": topic,
            "topicId": topic_id,
            "expires": None if day is None else _EPOCH + timedelta(days=day),
            "reason": reason,
            "segments": segments,
            "bytes": size,
        }
        for (topic, topic_id, day, reason), (segments, size) in replayed.expiring.items()
    ]
    rows.sort(key=lambda row: (row["topic"], row["topicId"], row["expires"] or date.max))
    return pa.Table.from_pylist(rows, RETENTION_FORECAST.columns)


def retention_settings(cluster: Cluster, partitions: Collection[TopicIdPartition]) -> dict[str, int | None]:
    """`retention.ms` of each topic id that the cluster has; None where it does not tell."""
    found: dict[str, int | None] = {}
    names = {one.topic_id: one.topic for one in partitions}
    settings = cluster.topic_configs(sorted(set(names.values())))
    for topic_id, name in names.items():
        try:
            is_of_today = cluster.topic(name).topic_id == topic_id
        except TieredctlError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC:
                raise
            continue
        value = settings.get(name, {}).get(RETENTION_MS) if is_of_today else None
        found[topic_id] = None if value is None or value.value is None else int(value.value)
    return found


def copy_lags(history: DataFrame, first_day: str) -> dict[str, pa.Table]:
    """By day from that one on, rows by `COPY_LAG_HOURLY.columns`, of rows of the history of segments."""
    finished = fn.unix_millis("validFrom")
    newest = fn.unix_millis("maxTimestamp")
    copies = history.where((fn.col("state") == _FINISHED.name) & (newest >= 0)).select(
        "topic",
        "topicId",
        fn.floor(finished / _HOUR_MS).alias("number"),
        (finished - newest).alias("lagMs"),
    )
    first_hour = (date.fromisoformat(first_day) - _EPOCH).days * DAY_MS // _HOUR_MS
    lags = copies.where(fn.col("number") >= first_hour).groupBy("topic", "topicId", "number")
    found = lags.agg(
        fn.count("*").alias("copies"),
        fn.percentile("lagMs", fn.lit(0.5)).alias("p50"),
        fn.percentile("lagMs", fn.lit(0.95)).alias("p95"),
        fn.max("lagMs").alias("longestMs"),
    )
    days: dict[str, list[dict[str, object]]] = {}
    for row in found.orderBy("number", "topic", "topicId").toArrow().to_pylist():
        hour_ms = row["number"] * _HOUR_MS
        columns = {name: row[name] for name in ("topic", "topicId", "copies", "longestMs")}
        columns |= {"hour": datetime.fromtimestamp(hour_ms / 1000, UTC), "p50Ms": round(row["p50"])}
        days.setdefault(day_of(hour_ms), []).append(columns | {"p95Ms": round(row["p95"])})
    return {day: pa.Table.from_pylist(rows, COPY_LAG_HOURLY.columns) for day, rows in days.items()}
