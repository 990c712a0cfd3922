"""The finding that a broker's quota (KIP-956) is below what is needed of it."""

from __future__ import annotations

from collections.abc import Mapping

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SettingSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.broker_settings import BrokerSettings


def low_quota(
    code: FindingCode, name: str, settings: BrokerSettings, message: str, counts: Mapping[str, int], rate: int
) -> Finding:
    """The finding about the quota `name`, where `rate` bytes a second are needed: twice as much is proposed. `counts`
    are evidence."""
    value = str(2 * rate)
    evidence: dict[str, object] = {"name": name, "stated": settings.values.get(name), "value": value}
    evidence |= {**counts, "bytesPerSecond": rate, "quota": settings.number(name)}
    return Finding(code, settings.subject, message, evidence, about=SettingSubject(name, value))
