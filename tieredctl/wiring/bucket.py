"""`doctor store`: a bucket's settings, judged by what a cluster's topics need."""

from __future__ import annotations

from tieredctl.config.file import storage_price
from tieredctl.ops.doctor.bucket import diagnose_bucket
from tieredctl.ops.doctor.bucket_topics import topics_of_bucket
from tieredctl.ops.doctor.diagnosis import Diagnosis
from tieredctl.ops.doctor.looking import Looking
from tieredctl.ops.documents import Document
from tieredctl.wiring.places import ClusterPlace, StorePlace


def diagnose_store(store: StorePlace, cluster: ClusterPlace | None, now_ms: int) -> tuple[Diagnosis, Document]:
    """What a store's bucket is set to and what is wrong with that, and where it was looked. Only reads. Raises
    TieredctlError as the places do, and `store-incapable` for a store without settings."""
    opened, settings = store.open_store(), store.open_settings()
    source: Document = {"kind": "store", "store": opened.url}
    looking, topics = Looking(), None
    if cluster is not None:
        with cluster.open() as live:
            topics = topics_of_bucket(live, looking)
            source["cluster"] = live.describe()
    price = storage_price(opened.url)
    return (
        diagnose_bucket(opened, settings, now_ms, price=price, topics=topics, odd=looking.findings),
        source,
    )
