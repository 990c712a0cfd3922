"""How Azure Blob Storage is reached: settings, requests by its REST API, and what its failures mean.

Requests are written here, after Azure's reference of the Blob service's REST API, and signed and sent by Azure's own
libraries: their client for blobs would deserialize each listed object for longer than all the rest of a listing takes,
and hides which of two objects was missing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import formatdate
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.storage.azure_account import AzureAccount, signed_in
from tieredctl.storage.bucket_store import endpoint_option
from tieredctl.storage.on_the_way import obstacle
from tieredctl.storage.refusals import REFUSAL_HINT
from tieredctl.storage.route import BY_ENVIRONMENT, Route, route

SERVICE_VERSION = "2026-02-06"
"""The version of the REST API: the first one whose listings can start at a name."""
_CONNECT_SECONDS, _READ_SECONDS = 10, 120
_THROTTLED = {
    "OperationTimedOut",
    "PendingCopyOperation",  # by an attempt before: it ends by itself
    "ServerBusy",
    "TooManyRequests",
}
_IMMUTABLE = {"BlobImmutableDueToLegalHold", "BlobImmutableDueToPolicy", "PathImmutableDueToPolicy"}
_LEASED = {"LeaseIdMissing", "LeaseIdMismatchWithBlobOperation", "LeaseLost"}
_WITH_SNAPSHOTS = {"SnapshotsPresent", "SnapshotOperationRateExceeded"}
_WRONG_ACCOUNT = {"AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation"}
_GONE_CONTAINER = {"AccountBeingCreated", "ContainerBeingDeleted", "ContainerDisabled", "ContainerNotFound"}


class AzureFailure(TieredctlError):
    """What went wrong with a request, and Azure's error code for it; `reason` is empty where no server answered."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        reason: str = "",
        status: int = 0,
        hint: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(code, message, hint=hint, retry_after_seconds=retry_after_seconds)
        self.reason = reason
        self._status = status

    @property
    def is_missing(self) -> bool:
        """There is no such blob. A server that answers 404 without this word may be anything."""
        return self.reason == "BlobNotFound" or (self.reason == "CannotVerifyCopySource" and self._status == 404)


class Answer(NamedTuple):
    """What the service answered. Names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class AzureConnection:
    """The settings of a connection, without credentials: those are where Azure's own tools have them."""

    account: str | None = None
    endpoint: str | None = None
    """The URL of the account's blob service, where it is not Azure's own."""
    domain: str | None = None
    """What follows an account's name in the host of its blob service; None where the URL does not name it."""
    route: Route = BY_ENVIRONMENT
    number: int = 0
    """Tells connections with the same settings apart."""

    def another(self) -> AzureConnection:
        """Another connection with the same settings."""
        return replace(self, number=self.number + 1)

    def signed_in(self, url: str) -> AzureAccount:
        """The one account that this process uses for these settings. Raises TieredctlError."""
        return _account(self, os.getpid(), url)

    def is_azure(self, url: str) -> bool:
        """Whether requests go to Azure itself, and not to a compatible server."""
        return self.signed_in(url).is_azure

    def request(
        self,
        method: str,
        url: str,
        path: str = "",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """A request's answer; `url` is the store's, for messages, and `path` a container and a blob's name.

        Raises AzureFailure.
        """
        import requests
        from azure.core.exceptions import AzureError
        from azure.core.pipeline.transport import HttpRequest
        from urllib3.exceptions import HTTPError

        account = self.signed_in(url)
        address = located(account.endpoint, path, query)
        request = HttpRequest(method, address, headers={**dated(), **(headers or {})})
        if body or method in {"PUT", "POST"}:
            request.set_bytes_body(body)
        try:
            answer = _pipeline(self, os.getpid(), url).run(request, stream=True).http_response
            # As they are stored: else compressed blobs would be decompressed in transit.
            data: bytes = answer.internal_response.raw.read(decode_content=False)
        except (AzureError, requests.RequestException, HTTPError) as error:
            raise unanswered(error, url, f" at {account.endpoint}" if self.endpoint else "") from None
        lower_headers = {name.lower(): value for name, value in answer.headers.items()}
        if not 200 <= answer.status_code < 300:
            raise refusal(answer.status_code, lower_headers, url)
        return Answer(answer.status_code, lower_headers, data)


def dated() -> dict[str, str]:
    """The headers that every request has, with the time of now."""
    return {"x-ms-version": SERVICE_VERSION, "x-ms-date": formatdate(usegmt=True)}


def located(endpoint: str, path: str, query: Mapping[str, str] | None = None) -> str:
    """The URL of a container or a blob."""
    asked = "?" + urlencode(query, quote_via=quote, safe="") if query else ""
    return f"{endpoint}/{quote(path)}{asked}"


def azure_connection(
    options: Mapping[str, str], account: str | None = None, domain: str | None = None
) -> AzureConnection:
    """The settings that `--store-option`s give; a URL may name the account and its domain. Raises TieredctlError."""
    named = options.get("account", account)
    if account is not None and named != account:
        message = f"The store's URL names the account {account}, but the store option account {named}."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Leave the option out.")
    if named is not None and not (named.isascii() and named.replace("-", "").isalnum()):
        raise TieredctlError(
            ErrorCode.USAGE, f"The store option account is {named!r}, which is not the name of a storage account."
        )
    return AzureConnection(named, endpoint_option(options.get("endpoint")), domain, route(options))


@cache
def _account(connection: AzureConnection, process: int, url: str) -> AzureAccount:  # noqa: ARG001 - as below
    return signed_in(connection.account, connection.endpoint, connection.domain, url)


@cache
def _pipeline(connection: AzureConnection, process: int, url: str) -> Any:  # noqa: ARG001 - a fork may not share connections
    import requests
    from azure.core.pipeline import Pipeline
    from azure.core.pipeline.transport import RequestsTransport

    from tieredctl.storage.routed_requests import send_by

    session = requests.Session()
    send_by(session, connection.route)
    transport = RequestsTransport(
        session=session, session_owner=False, connection_timeout=_CONNECT_SECONDS, read_timeout=_READ_SECONDS
    )
    # Without a policy of retries: tieredctl.storage.retrying knows what may be tried again, and how long to wait.
    return Pipeline(transport, [connection.signed_in(url).signer])


def unanswered(error: Exception, url: str, at: str = "") -> AzureFailure:
    """Why a request could not be signed, or was not answered. The library's message is not repeated: it may quote a
    token."""
    from azure.core.exceptions import ClientAuthenticationError

    if not isinstance(error, ClientAuthenticationError):
        in_the_way = obstacle(error, url, "REQUESTS_CA_BUNDLE")
        if in_the_way is not None:
            return AzureFailure(in_the_way.code, f"{in_the_way.message}.", hint=in_the_way.hint)
        message = f"{url} does not answer{at} ({type(error).__name__})."
        return AzureFailure(ErrorCode.STORE_UNREACHABLE, message)
    hint = "Set AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or run `az login`."
    message = f"There are no credentials for {url} ({type(error).__name__})."
    return AzureFailure(ErrorCode.NO_CREDENTIALS, message, hint=hint)


def refusal(status: int, headers: Mapping[str, str], url: str) -> AzureFailure:
    """The failure that a status and an error code mean. The service's message is not repeated: it may quote the
    request."""
    reason = headers.get("x-ms-error-code", str(status))
    if reason in _THROTTLED or status in {429, 503}:
        wait = headers.get("retry-after", "")
        return AzureFailure(
            ErrorCode.STORE_THROTTLED,
            f"{url} throttles requests ({reason}).",
            reason=reason,
            retry_after_seconds=float(wait) if wait.isdecimal() and len(wait) < 6 else None,
        )
    if reason in _GONE_CONTAINER:
        return AzureFailure(ErrorCode.BUCKET_MISSING, f"There is no container for {url} ({reason}).", reason=reason)
    if reason in _WRONG_ACCOUNT:
        return AzureFailure(
            ErrorCode.STORE_FORBIDDEN, f"{url} does not accept these credentials ({reason}).", reason=reason
        )
    if reason in _IMMUTABLE | _LEASED | _WITH_SNAPSHOTS:
        return AzureFailure(ErrorCode.STORE_FORBIDDEN, f"{url} protects this blob ({reason}).", reason=reason)
    if status in {401, 403}:
        return AzureFailure(ErrorCode.STORE_FORBIDDEN, f"{url} denies access ({reason}).", reason=reason)
    if status == 408 or (status >= 500 and status != 501):
        return AzureFailure(ErrorCode.STORE_UNREACHABLE, f"{url} failed to answer ({reason}).", reason=reason)
    message = f"{url} refused the request ({reason})."
    return AzureFailure(ErrorCode.UNREADABLE, message, reason=reason, status=status, hint=REFUSAL_HINT)
