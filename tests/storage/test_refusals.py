"""What a server refuses for a reason of its own says where to look: at the bucket, never at a file."""

from __future__ import annotations

from tieredctl.errors import ErrorCode
from tieredctl.storage import azure_connection, gcs_connection, s3_connection


def test_a_hint_is_about_the_bucket_that_was_asked() -> None:
    url = "s3://bucket"
    refused = (
        s3_connection.refusal("InvalidBucketName", 400, url),
        s3_connection.refusal("NotImplemented", 501, url),
        azure_connection.refusal(400, {"x-ms-error-code": "InvalidResourceName"}, url),
        gcs_connection.refusal(400, url),
        gcs_connection.refusal(501, url),
    )

    for failure in refused:
        assert failure.code is ErrorCode.UNREADABLE
        assert failure.hint != ErrorCode.UNREADABLE.hint
