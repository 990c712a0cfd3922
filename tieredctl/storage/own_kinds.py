"""The kinds of stores that come with tieredctl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import Capability, WritableObjectStore
from tieredctl.ports.store_kinds import Address, ClientLibrary, StoreKind, folder_of
from tieredctl.storage.route import ROUTE_OPTIONS

if TYPE_CHECKING:
    from tieredctl.ports.bucket_settings import BucketSettings
    from tieredctl.storage.azure import AzureStore
    from tieredctl.storage.gcs import GcsStore
    from tieredctl.storage.s3 import S3Store

_OF_THIS_HOST = frozenset(Capability) - {Capability.MULTIPART_UPLOADS}


def _open_folder(rest: str, _options: Mapping[str, str], _relied_on: frozenset[Capability]) -> WritableObjectStore:
    from tieredctl.storage.file import FileStore

    return FileStore(folder_of("file", rest))


def _open_memory(rest: str, _options: Mapping[str, str], _relied_on: frozenset[Capability]) -> WritableObjectStore:
    from tieredctl.storage.memory import MemoryStore

    if rest:
        raise TieredctlError(ErrorCode.NO_STORE, f"A store in memory has no name, but 'memory:{rest}' gives it one.")
    return MemoryStore()


def _open_s3(rest: str, options: Mapping[str, str], relied_on: frozenset[Capability]) -> S3Store:
    from tieredctl.storage.bucket_address import bucket_address
    from tieredctl.storage.s3 import S3Store
    from tieredctl.storage.s3_connection import s3_connection

    return S3Store(bucket_address("s3", rest), s3_connection(options), relied_on)


def _is_aws(store: S3Store) -> bool:
    return store.connection.is_aws


def _open_gcs(rest: str, options: Mapping[str, str], relied_on: frozenset[Capability]) -> GcsStore:
    from tieredctl.storage.bucket_address import bucket_address
    from tieredctl.storage.gcs import GcsStore
    from tieredctl.storage.gcs_connection import gcs_connection

    return GcsStore(bucket_address("gs", rest), gcs_connection(options), relied_on)


def _is_google(store: GcsStore) -> bool:
    return store.connection.is_google


def _open_azure(rest: str, options: Mapping[str, str], relied_on: frozenset[Capability]) -> AzureStore:
    from tieredctl.storage.azure import AzureStore
    from tieredctl.storage.azure_connection import azure_connection
    from tieredctl.storage.bucket_address import bucket_address

    return AzureStore(bucket_address("az", rest), azure_connection(options), relied_on)


def _open_azure_by_account(rest: str, options: Mapping[str, str], relied_on: frozenset[Capability]) -> AzureStore:
    from tieredctl.storage.azure import AzureStore
    from tieredctl.storage.azure_connection import azure_connection
    from tieredctl.storage.bucket_address import container_address

    address, account, domain = container_address("abfss", rest)
    return AzureStore(address, azure_connection(options, account, domain), relied_on)


def _is_azure(store: AzureStore) -> bool:
    return store.connection.is_azure(store.url)


def _s3_settings(store: S3Store) -> BucketSettings:
    from tieredctl.storage.s3_settings import S3Settings

    return S3Settings(store.address, store.connection)


def _gcs_settings(store: GcsStore) -> BucketSettings:
    from tieredctl.storage.gcs_settings import GcsSettings

    return GcsSettings(store.address, store.connection)


def _azure_settings(store: AzureStore) -> BucketSettings:
    from tieredctl.storage.azure_settings import AzureSettings

    return AzureSettings(store.address, store.connection)


FILE = StoreKind("file", "file:DIR", Address.FOLDER, _open_folder, _OF_THIS_HOST, is_proven=lambda _: True)
MEMORY = StoreKind("memory", "memory:", Address.NONE, _open_memory, _OF_THIS_HOST, is_proven=lambda _: True)
S3 = StoreKind(
    "s3",
    "s3://BUCKET/PREFIX",
    Address.BUCKET,
    _open_s3,
    frozenset(Capability) - {Capability.MODIFICATION_TIMES},
    options=("endpoint", "region", "profile", "addressing-style", *ROUTE_OPTIONS),
    keeps_versions=True,
    is_remote=True,
    is_proven=_is_aws,
    library=ClientLibrary(
        module="boto3",
        package="boto3",
        extra="s3",
        # Botocore's others print the headers and bodies of requests and answers.
        loggers=("botocore.credentials", "botocore.retries", "botocore.retryhandler"),
    ),
    settings=_s3_settings,
)
GOOGLE = StoreKind(
    "gs",
    "gs://BUCKET/PREFIX",
    Address.BUCKET,
    _open_gcs,
    frozenset(Capability) - {Capability.MODIFICATION_TIMES, Capability.MULTIPART_UPLOADS},
    options=("endpoint", *ROUTE_OPTIONS),
    keeps_versions=True,
    is_remote=True,
    is_proven=_is_google,
    library=ClientLibrary(
        module="google.cloud.storage",
        package="google-cloud-storage",
        extra="gs",
        loggers=("google.auth.transport", "google.cloud.storage"),
    ),
    settings=_gcs_settings,
)
AZURE = StoreKind(
    "az",
    "az://CONTAINER/PREFIX",
    Address.BUCKET,
    _open_azure,
    frozenset(Capability) - {Capability.MODIFICATION_TIMES, Capability.MULTIPART_UPLOADS},
    options=("account", "endpoint", *ROUTE_OPTIONS),
    keeps_versions=True,
    is_remote=True,
    is_proven=_is_azure,
    library=ClientLibrary(
        module="azure.storage.blob",
        package="azure-storage-blob",
        extra="azure",
        # Azure's others print the headers of requests and answers.
        loggers=("azure.identity",),
    ),
    settings=_azure_settings,
)
AZURE_BY_ACCOUNT = replace(
    AZURE,
    scheme="abfss",
    form="abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX",
    address=Address.CONTAINER,
    open=_open_azure_by_account,
)
