"""`doctor store`: what a bucket's settings do to tiered storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tieredctl.model.findings import Finding
from tieredctl.model.prices import StoragePrice
from tieredctl.ops.doctor.bucket_contents import Lister
from tieredctl.ops.doctor.bucket_keeping_rules import keeping_findings
from tieredctl.ops.doctor.bucket_lifecycle_rules import lifecycle_findings
from tieredctl.ops.doctor.bucket_reading_rules import reading_findings
from tieredctl.ops.doctor.bucket_view import BucketView, TieredTopics
from tieredctl.ops.doctor.diagnosis import Diagnosis, ordered
from tieredctl.ports.bucket_settings import BucketSettings
from tieredctl.ports.object_store import ObjectStore


def diagnose_bucket(
    store: ObjectStore,
    settings: BucketSettings,
    now_ms: int,
    *,
    price: StoragePrice | None = None,
    topics: TieredTopics | None = None,
    odd: Sequence[Finding] = (),
) -> Diagnosis:
    """Asks for a bucket's settings and judges them, by the retention of the `topics` if a cluster was given; `odd` is
    what it did not tell. Raises TieredctlError as the store does where it does not answer at all."""
    lister = Lister(store, settings)
    contents = lister.objects()
    facts = settings.ask(contents.sample)
    versions, markers = lister.versions(facts.versioning)
    uploads = None if facts.uploads_end_themselves else lister.uploads()
    contents = replace(contents, versions=versions, delete_markers=markers, uploads=uploads, cut=lister.cut)
    facts = replace(facts, unanswered=[*lister.unanswered, *facts.unanswered])
    view = BucketView(store.url, facts, contents, settings, now_ms, price, topics)
    return Diagnosis(_looked_at(view), ordered([*odd, *_findings(view)]))


def _findings(view: BucketView) -> Iterator[Finding]:
    yield from view.unknown()
    yield from view.not_listed()
    yield from keeping_findings(view)
    yield from lifecycle_findings(view)
    yield from reading_findings(view)


def _looked_at(view: BucketView) -> dict[str, object]:
    return {
        "objects": view.contents.objects,
        "sampled": len(view.contents.sample),
        "topics": None if view.topics is None else view.topics.topics,
        "everyObject": not view.contents.cut,
    }
