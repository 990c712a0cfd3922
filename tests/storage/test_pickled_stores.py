"""What a pickled store gives away: it is sent to executors, and may be seen there."""

from __future__ import annotations

import pickle

from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.object_servers import ACCESS_KEY, SECRET_KEY, ObjectServer
from tieredctl.storage.registry import open_store


def test_a_pickled_store_holds_no_credentials_even_after_it_has_used_them(versitygw: ObjectServer) -> None:
    bucket = S3Bucket(versitygw.endpoint)
    bucket.put("pickled/x", b"1")
    store = open_store(f"s3://{BUCKET}/pickled", bucket.options)

    assert store.head("x") is not None
    pickled = pickle.dumps(store)

    assert SECRET_KEY.encode() not in pickled
    assert ACCESS_KEY.encode() not in pickled
    assert versitygw.endpoint.encode() in pickled
