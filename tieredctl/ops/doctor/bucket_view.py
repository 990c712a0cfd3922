"""What the rules about a bucket judge, and how they say what they find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.pasteable import quoted
from tieredctl.model.prices import StoragePrice
from tieredctl.ops.doctor.bucket_contents import BucketContents
from tieredctl.ports.bucket_settings import BucketFacts, BucketSettings, LifecycleRule
from tieredctl.ports.object_store import RESERVED_FOLDER

DAY_MS = 86_400_000


class TieredTopics(NamedTuple):
    """What a cluster's tiered topics need of the bucket."""

    topics: int
    partitions: int
    longest: str = ""
    """The topic with the longest retention."""
    retention_days: float | None = None
    """Its retention; infinite where it has no limit, None where no topic is tiered or it is not known."""
    has_chunk_cache: bool | None = None
    """Whether brokers keep what they fetch; None where they do not show it."""


@dataclass(frozen=True, slots=True)
class BucketView:
    """A bucket: what it is set to, what is in it, and what it is for."""

    url: str
    facts: BucketFacts
    contents: BucketContents
    settings: BucketSettings
    now_ms: int
    price: StoragePrice | None = None
    topics: TieredTopics | None = None

    @property
    def root(self) -> str:
        """The prefix of the store's objects, in full."""
        prefix = self.url.partition("://")[2].partition("/")[2]
        return prefix + "/" if prefix else ""

    @property
    def retention_days(self) -> float | None:
        """The topics' longest retention; None where it is not known."""
        return None if self.topics is None else self.topics.retention_days

    def covers(self, rule: LifecycleRule) -> bool:
        """Whether a rule is for every object of the store."""
        return not rule.narrowed_by and any(self.root.startswith(prefix) for prefix in rule.prefixes)

    def touches(self, rule: LifecycleRule) -> bool:
        """Whether a rule may be for any object of the store but tieredctl's own."""
        others = [one for one in rule.prefixes if not one.startswith(self.root + RESERVED_FOLDER)]
        return any(prefix.startswith(self.root) or self.root.startswith(prefix) for prefix in others)

    def cost(self, class_bytes: Mapping[str, int] | None) -> dict[str, object]:
        """What bytes cost for a month, as evidence; without a price, or where they are unknown, nothing."""
        if self.price is None or class_bytes is None:
            return {}
        return {"monthlyCost": self.price.monthly_cost_of(class_bytes), "currency": self.price.currency}

    def finding(
        self,
        code: FindingCode,
        message: str,
        evidence: Mapping[str, object],
        severity: Severity | None = None,
        **names: str,
    ) -> Finding:
        """A finding about the bucket, with the provider's command that mends it, filled with `names`."""
        template = self.settings.remedies.get(code)
        words = {name: quoted(text) for name, text in names.items()}
        command = {} if template is None else {"command": template.format_map(words)}
        return Finding(code, self.url, message, {**evidence, **command}, severity)

    def not_listed(self) -> Iterator[Finding]:
        """A finding where there is more than was looked at."""
        if self.contents.cut:
            message = f"only the first {' and '.join(self.contents.cut)} were looked at: what is wrong with the others "
            message += "is unknown"
            yield self.finding(FindingCode.STORE_NOT_ALL_LISTED, message, {"listings": list(self.contents.cut)})

    def unknown(self) -> Iterator[Finding]:
        """A finding for each question without an answer."""
        for one in self.facts.unanswered:
            why = "" if one.is_unsupported else f", it needs {one.right}"
            evidence = {"question": one.question, "right": one.right, "error": one.error}
            message = f"{one.question}: unknown{why}: {one.error}"
            finding = self.finding(FindingCode.STORE_SETTING_UNKNOWN, message, evidence, right=one.right)
            if one.is_unsupported:
                hint = "look it up with the server's own administration"
                finding = Finding(finding.code, finding.subject, message, {**evidence, "command": hint})
            yield finding
