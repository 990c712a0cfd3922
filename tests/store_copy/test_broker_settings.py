"""What brokers have to be told to read a copy."""

from __future__ import annotations

from tieredctl.ops.orphans.bucket_inventory import BucketPlace
from tieredctl.ops.store_copy.broker_settings import settings_to_change

S3 = BucketPlace("s3", "tiered", "prod/")


def test_aivens_plugin_is_told_the_bucket_and_what_of_its_prefix_and_backend_changes() -> None:
    for destination, said in (
        (BucketPlace("s3", "copy", "prod/"), ["rsm.config.storage.s3.bucket.name=copy"]),
        (BucketPlace("s3", "copy", ""), ["bucket.name=copy", "rsm.config.key.prefix has to lose prod/."]),
        (
            BucketPlace("gs", "copy", "a/"),
            ["storage.gcs.bucket.name=copy", "rsm.config.storage.backend.class", "begin with a/ instead of prod/."],
        ),
        (BucketPlace("az", "copy", "prod/"), ["storage.azure.container.name=copy", "backend.class"]),
        (BucketPlace("file", "/mnt/copy", ""), ["storage.root=/mnt/copy", "backend.class", "lose prod/."]),
    ):
        sentences = list(settings_to_change("aiven", S3, destination))

        assert [part in sentence for part, sentence in zip(said, sentences, strict=True)] == [True] * len(said)


def test_nothing_is_said_of_a_layout_whose_writer_is_not_known() -> None:
    assert list(settings_to_change("local", S3, BucketPlace("file", "/mnt/copy", ""))) == []
