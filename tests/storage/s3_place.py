"""A prefix of a bucket for a test."""

from __future__ import annotations

from itertools import count

from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.object_servers import ObjectServer
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.s3 import S3Store
from tieredctl.storage.s3_connection import S3Connection

_prefixes = count()


class S3Place:
    """A prefix of a bucket, as a store and as boto3 sees it."""

    def __init__(self, server: ObjectServer) -> None:
        self.bucket = S3Bucket(server.endpoint)
        self.root = f"s3-{next(_prefixes)}/"
        self.connection = S3Connection(server.endpoint, addressing_style="path")
        self.store = S3Store(BucketAddress("s3", BUCKET, self.root), self.connection)

    def put(self, *keys: str) -> None:
        for key in keys:
            self.bucket.put(self.root + key, key.encode())

    def keys(self) -> list[str]:
        return [stored.key for stored in self.store.list()]

    def head(self, key: str) -> StoredObject:
        stored = self.store.head(key)
        assert stored is not None
        return stored

    def begin_upload(self, key: str) -> str:
        answer = self.bucket.client.create_multipart_upload(Bucket=BUCKET, Key=self.root + key)
        return str(answer["UploadId"])
