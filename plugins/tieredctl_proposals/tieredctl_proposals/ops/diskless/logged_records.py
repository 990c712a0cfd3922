"""`diskless format`: the records of coordinators' logs as documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tieredctl.formats.kafka_json import json_document
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl_proposals.formats.diskless_records import schema_values
from tieredctl_proposals.ops.diskless.coordinator_logs import CoordinatorLogs


class LoggedRecords:
    """Records as they are read; counts and findings are complete after the last of them."""

    def __init__(self, logs: CoordinatorLogs, coordinator: int | None) -> None:
        """The records of all coordinators, or of one."""
        self._logs, self._coordinator = logs, coordinator
        self._counts: Counter[str] = Counter()

    @property
    def findings(self) -> list[Finding]:
        """What of the logs cannot be shown."""
        return self._logs.findings

    def documents(self) -> Iterator[Document]:
        """By coordinator, then offset; `fields` as Kafka's JSON converters would print them."""
        for logged in self._logs.records(self._coordinator):
            schema, values = schema_values(logged.record)
            self._counts[schema.name] += 1
            yield {
                "metadataPartition": logged.coordinator,
                "metadataOffset": logged.offset,
                "timestampMs": logged.timestamp_ms,
                "type": schema.name,
                "fields": json_document(schema, values),
            }

    def summary(self) -> Document:
        """How many records of each type there are."""
        return {"records": self._counts.total(), "types": dict(sorted(self._counts.items()))}
