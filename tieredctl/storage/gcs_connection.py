"""How Google Cloud Storage is reached: settings, a client made of them, and what its failures mean."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.storage.bucket_store import endpoint_option
from tieredctl.storage.on_the_way import obstacle
from tieredctl.storage.refusals import REFUSAL_HINT
from tieredctl.storage.route import BY_ENVIRONMENT, Route, route

_NOT_FOUND = 404
_PRECONDITION_FAILED = 412
_RANGE_NOT_SATISFIABLE = 416
# tieredctl.storage.retrying knows what may be tried again, and how long to wait.
ONCE: dict[str, Any] = {"retry": None, "timeout": (10, 120)}
"""What has the client make a request once."""


class GcsFailure(TieredctlError):
    """What went wrong with a request, and its HTTP status; 0 where no server answered."""

    def __init__(self, code: ErrorCode, message: str, *, status: int = 0, hint: str | None = None) -> None:
        super().__init__(code, message, hint=hint)
        self.status = status

    @property
    def is_missing(self) -> bool:
        """There is no such object, or no such bucket."""
        return self.status == _NOT_FOUND

    @property
    def is_changed(self) -> bool:
        """The object is not the named generation."""
        return self.status == _PRECONDITION_FAILED

    @property
    def is_beyond_its_end(self) -> bool:
        """The object has no byte of the requested range."""
        return self.status == _RANGE_NOT_SATISFIABLE


@dataclass(frozen=True, slots=True)
class GcsConnection:
    """The settings of a connection, without credentials: Google's library finds those where gcloud leaves them, or
    uses a workload's identity. A server without TLS is sent none."""

    endpoint: str | None = None
    route: Route = BY_ENVIRONMENT
    number: int = 0
    """Tells connections with the same settings apart."""

    def another(self) -> GcsConnection:
        """Another connection with the same settings."""
        return replace(self, number=self.number + 1)

    @property
    def is_google(self) -> bool:
        """Whether requests go to Google itself, and not to a compatible server."""
        return self.endpoint is None and not os.environ.get("STORAGE_EMULATOR_HOST")

    def client(self, url: str) -> Any:
        """The one client that this process has for these settings, of google-cloud-storage. Raises GcsFailure."""
        with failing_as_tieredctl(url):
            return _client(self, os.getpid())


def gcs_connection(options: Mapping[str, str]) -> GcsConnection:
    """The settings that `--store-option`s give. Raises TieredctlError for an invalid value."""
    return GcsConnection(endpoint_option(options.get("endpoint")), route(options))


@cache
def _client(connection: GcsConnection, process: int) -> Any:  # noqa: ARG001 - a fork may not share connections
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    from tieredctl.storage.routed_requests import send_by

    endpoint = connection.endpoint
    unsafe = endpoint is not None and endpoint.startswith("http:")
    client = storage.Client(
        project="unused",  # only making and listing buckets needs one
        credentials=AnonymousCredentials() if unsafe else None,  # type: ignore[no-untyped-call]
        client_options={"api_endpoint": endpoint} if endpoint else None,
    )
    # Else it requests the bucket's description besides the first request: for a trace that is not taken, and with a
    # permission that a reader of objects need not have.
    client._bucket_metadata_cache = None
    send_by(client._http, connection.route)
    return client


@contextmanager
def failing_as_tieredctl(url: str) -> Iterator[None]:
    """Raises what google-cloud-storage and what is below it raise as GcsFailure; `url` is the store's, for messages."""
    import requests
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, RefreshError, TransportError
    from google.cloud.storage.exceptions import DataCorruption, InvalidResponse

    try:
        yield
    except GoogleAPICallError as error:
        raise refusal(int(error.code or 0), url) from None
    except InvalidResponse as error:
        raise refusal(int(error.response.status_code), url) from None
    except (DefaultCredentialsError, RefreshError) as error:
        raise GcsFailure(
            ErrorCode.NO_CREDENTIALS, f"There are no credentials for {url} ({type(error).__name__})."
        ) from None
    except (requests.RequestException, TransportError, DataCorruption) as error:
        in_the_way = obstacle(error, url, "REQUESTS_CA_BUNDLE")
        if in_the_way is not None:
            raise GcsFailure(in_the_way.code, f"{in_the_way.message}.", hint=in_the_way.hint) from None
        raise GcsFailure(ErrorCode.STORE_UNREACHABLE, f"{url} does not answer ({type(error).__name__}).") from None
    except GoogleAuthError as error:
        raise GcsFailure(
            ErrorCode.NO_CREDENTIALS, f"Credentials for {url} cannot be used ({type(error).__name__})."
        ) from None


def refusal(status: int, url: str) -> GcsFailure:
    """The failure that an HTTP status means. The server's message is not repeated: it quotes the request."""
    if status in {429, 503}:
        return GcsFailure(ErrorCode.STORE_THROTTLED, f"{url} throttles requests (HTTP status {status}).", status=status)
    if status in {401, 403}:
        return GcsFailure(ErrorCode.STORE_FORBIDDEN, f"{url} denies access (HTTP status {status}).", status=status)
    if status == 501:
        message = f"{url} does not support this request."
        return GcsFailure(ErrorCode.UNREADABLE, message, status=status, hint=REFUSAL_HINT)
    if status in {0, 408} or status >= 500:
        return GcsFailure(ErrorCode.STORE_UNREACHABLE, f"{url} failed to answer (HTTP status {status}).", status=status)
    message = f"{url} refused the request (HTTP status {status})."
    return GcsFailure(ErrorCode.UNREADABLE, message, status=status, hint=REFUSAL_HINT)
