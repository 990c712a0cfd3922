"""Buckets on the servers of `object_servers`, filled and looked at by the clouds' own libraries."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .object_servers import ACCESS_KEY, AZURE_ACCOUNT, AZURE_KEY, SECRET_KEY

BUCKET = "tiered"
AZURE_API = "2026-02-06"
"""The newest that Azurite knows of those that Azure's library does."""


class S3Bucket:
    """A bucket of an S3 server, made when it is not there."""

    scheme = "s3"

    def __init__(self, endpoint: str) -> None:
        import boto3
        from botocore.config import Config

        self.options = {"endpoint": endpoint, "addressing-style": "path"}
        self.client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(s3={"addressing_style": "path"}),
        )
        if BUCKET not in {bucket["Name"] for bucket in self.client.list_buckets()["Buckets"]}:
            self.client.create_bucket(Bucket=BUCKET)

    def put(self, name: str, data: bytes, content_type: str = "text/plain", **metadata: str) -> None:
        """Makes or replaces an object."""
        self.client.put_object(Bucket=BUCKET, Key=name, Body=data, ContentType=content_type, Metadata=metadata)

    def remove(self, name: str) -> None:
        """Deletes an object."""
        self.client.delete_object(Bucket=BUCKET, Key=name)

    def described(self, name: str) -> tuple[str, Mapping[str, str]]:
        """An object's content type and metadata."""
        answer = self.client.head_object(Bucket=BUCKET, Key=name)
        return answer["ContentType"], answer["Metadata"]

    def read(self, name: str) -> bytes:
        """An object's bytes."""
        data: bytes = self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
        return data

    def whole(self, name: str) -> tuple[bytes, str, Mapping[str, str]]:
        """An object's bytes, content type and metadata."""
        answer = self.client.get_object(Bucket=BUCKET, Key=name)
        return answer["Body"].read(), answer["ContentType"], answer["Metadata"]

    def names(self, prefix: str) -> list[str]:
        """The names of all objects that begin so."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", ())]


class GcsBucket:
    """A bucket of a server like Google Cloud Storage, made when it is not there."""

    scheme = "gs"

    def __init__(self, endpoint: str) -> None:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage

        self.options = {"endpoint": endpoint}
        credentials = AnonymousCredentials()  # type: ignore[no-untyped-call]
        client = storage.Client("tests", credentials, client_options={"api_endpoint": endpoint})
        self._client = client
        self._bucket: Any = client.bucket(BUCKET)
        self.blob = self._bucket.blob
        if BUCKET not in {bucket.name for bucket in client.list_buckets()}:
            client.create_bucket(BUCKET)

    def put(self, name: str, data: bytes, content_type: str = "text/plain", **metadata: str) -> None:
        """Makes or replaces an object."""
        blob = self._bucket.blob(name)
        blob.metadata = metadata
        blob.upload_from_string(data, content_type)

    def versioned(self, name: str) -> Any:
        """Another bucket, which keeps versions, as Google's library sees it."""
        bucket = self._client.bucket(name)
        bucket.versioning_enabled = True
        return self._client.create_bucket(bucket)

    def remove(self, name: str) -> None:
        """Deletes an object."""
        self.blob(name).delete()

    def described(self, name: str) -> tuple[str, Mapping[str, str]]:
        """An object's content type and metadata."""
        blob = self._bucket.get_blob(name)
        return blob.content_type, blob.metadata or {}

    def read(self, name: str) -> bytes:
        """An object's bytes."""
        data: bytes = self._bucket.blob(name).download_as_bytes()
        return data

    def whole(self, name: str) -> tuple[bytes, str, Mapping[str, str]]:
        """An object's bytes, content type and metadata."""
        return self.read(name), *self.described(name)

    def names(self, prefix: str) -> list[str]:
        """The names of all objects that begin so."""
        return [blob.name for blob in self._bucket.list_blobs(prefix=prefix)]


class AzureContainer:
    """A container of Azurite, made when it is not there."""

    scheme = "az"

    def __init__(self, endpoint: str, container: str = BUCKET) -> None:
        from azure.core.exceptions import ResourceExistsError
        from azure.storage.blob import ContainerClient, LinearRetry

        self.options = {"endpoint": endpoint}
        credential = {"account_name": AZURE_ACCOUNT, "account_key": AZURE_KEY}
        # Azurite ends a connection that was idle for some seconds, maybe while a request is on its way to it.
        again = LinearRetry(backoff=0, retry_total=3, random_jitter_range=0)
        self.client: Any = ContainerClient(
            endpoint, container, credential=credential, retry_policy=again, api_version=AZURE_API
        )
        with suppress(ResourceExistsError):
            self.client.create_container()

    def put(self, name: str, data: bytes, content_type: str = "text/plain", **metadata: str) -> None:
        """Makes or replaces an object."""
        from azure.storage.blob import ContentSettings

        settings = ContentSettings(content_type=content_type)
        self.client.upload_blob(name, data, overwrite=True, metadata=metadata, content_settings=settings)

    def remove(self, name: str) -> None:
        """Deletes an object."""
        self.client.delete_blob(name)

    def described(self, name: str) -> tuple[str, Mapping[str, str]]:
        """An object's content type and metadata."""
        found = self.client.get_blob_client(name).get_blob_properties()
        return found.content_settings.content_type, found.metadata

    def read(self, name: str) -> bytes:
        """An object's bytes."""
        return self.whole(name)[0]

    def whole(self, name: str) -> tuple[bytes, str, Mapping[str, str]]:
        """An object's bytes, content type and metadata."""
        found = self.client.download_blob(name)
        properties = found.properties
        return found.readall(), properties.content_settings.content_type, properties.metadata

    def names(self, prefix: str) -> list[str]:
        """The names of all objects that begin so."""
        return list(self.client.list_blob_names(name_starts_with=prefix))


Bucket = S3Bucket | GcsBucket | AzureContainer
