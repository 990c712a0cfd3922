"""How an S3 server is reached: settings, a client made of them, and what its failures mean."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.storage.bucket_store import MOST_REQUESTS_AT_ONCE, endpoint_option
from tieredctl.storage.on_the_way import obstacle
from tieredctl.storage.refusals import REFUSAL_HINT
from tieredctl.storage.route import BY_ENVIRONMENT, Route, route
from tieredctl.storage.s3_listing_page import note_root, read_listing_page

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

ADDRESSING_STYLES = ("auto", "path", "virtual")

Answer = dict[str, Any]
Operation = Literal[
    "abort_multipart_upload",
    "complete_multipart_upload",
    "copy_object",
    "create_multipart_upload",
    "delete_object",
    "delete_objects",
    "get_bucket_acl",
    "get_bucket_encryption",
    "get_bucket_lifecycle_configuration",
    "get_bucket_policy_status",
    "get_bucket_replication",
    "get_bucket_request_payment",
    "get_bucket_versioning",
    "get_object",
    "get_object_acl",
    "get_object_legal_hold",
    "get_object_lock_configuration",
    "get_object_retention",
    "get_object_tagging",
    "get_public_access_block",
    "head_bucket",
    "head_object",
    "list_bucket_intelligent_tiering_configurations",
    "list_multipart_uploads",
    "list_object_versions",
    "list_parts",
    "list_objects_v2",
    "put_object",
    "upload_part",
    "upload_part_copy",
]
"""What tieredctl uses of boto3's S3 client."""

_SHORTENED = {".", ".."}
_CONNECT_SECONDS = 10
_READ_SECONDS = 120
"""A server-side copy says nothing until it is done."""

_THROTTLED = {
    "BandwidthLimitExceeded",
    "ConditionalRequestConflict",  # two writers at once; S3 asks to try again
    "OperationAborted",
    "RequestLimitExceeded",
    "RequestThrottled",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequests",
    "TooManyRequestsException",
}
_UNKNOWN_USER = {"InvalidAccessKeyId", "InvalidToken", "ExpiredToken", "SignatureDoesNotMatch", "TokenRefreshRequired"}
_NOT_IMPLEMENTED = "NotImplemented"
_OTHER_REGION = {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect", "301"}
_NO_CREDENTIALS = {
    "CredentialRetrievalError",
    "LoginRefreshRequired",
    "NoAuthTokenError",
    "NoCredentialsError",
    "PartialCredentialsError",
    "SSOError",
    "SSOTokenLoadError",
    "TokenRetrievalError",
    "UnauthorizedSSOTokenError",
}
_SETTINGS_AT_FAULT = {"InvalidConfigError", "NoRegionError", "ConfigParseError", "InvalidRegionError"}
_NO_ANSWER = {"HTTPClientError", "HTTPError", "IncompleteReadError", "ResponseStreamingError", "ConnectionError"}


class S3Failure(TieredctlError):
    """What went wrong with a request, and S3's error code for it; `reason` is empty where no S3 server answered."""

    def __init__(self, code: ErrorCode, message: str, *, reason: str = "", hint: str | None = None) -> None:
        super().__init__(code, message, hint=hint)
        self.reason = reason


class Told(dict[str, Any]):
    """What a server said. Raises S3Failure `unreadable` where a field that is needed is not in it: of an object without
    a size or an ETag nothing may be said, nor of a page that does not say whether more comes."""

    def __init__(self, fields: Mapping[str, Any], url: str) -> None:
        super().__init__((name, told(value, url)) for name, value in fields.items())
        self.url = url

    def __missing__(self, name: str) -> Any:
        raise S3Failure(ErrorCode.UNREADABLE, f"{self.url} gives an answer without {name}.", hint=REFUSAL_HINT)


def told(value: Any, url: str) -> Any:
    """An answer or a part of one, with everything in it `Told`."""
    if isinstance(value, dict):
        return Told(value, url)
    return [told(one, url) for one in value] if isinstance(value, list) else value


def following(page: Answer, *markers: str) -> list[Any] | None:
    """Where the next page of a listing begins, by these fields of a page; None after the last one. Raises S3Failure
    `unreadable` where a page does not say: it may be cut short, and what is not listed would count as not there."""
    return [page[name] for name in markers] if page["IsTruncated"] else None


@dataclass(slots=True)
class Onward:
    """Where the pages of a listing begin, whose names rise, and for each name are in no order."""

    url: str
    _name: str = ""
    _seen: set[str] = field(default_factory=lambda: {""})

    def demand(self, name: str, mark: str) -> None:
        """Raises S3Failure `unreadable` where a page begins where one did before: the listing would not end."""
        if name.encode() < self._name.encode() or (name == self._name and mark in self._seen):
            raise S3Failure(ErrorCode.UNREADABLE, f"{self.url} lists what follows {name!r} over and over.")
        if name != self._name:
            self._name, self._seen = name, set()
        self._seen.add(mark)


@dataclass(frozen=True, slots=True)
class S3Connection:
    """The settings of a connection, without credentials: boto3 finds those where AWS' own tools do."""

    endpoint: str | None = None
    region: str | None = None
    profile: str | None = None
    addressing_style: str = "auto"
    route: Route = BY_ENVIRONMENT
    number: int = 0
    """Tells connections with the same settings apart."""

    def another(self) -> S3Connection:
        """Another connection with the same settings."""
        return replace(self, number=self.number + 1)

    @property
    def is_aws(self) -> bool:
        """Whether requests go to AWS itself, and not to a compatible server."""
        endpoint: str = _client(self, os.getpid()).meta.endpoint_url
        return (urlsplit(endpoint).hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn"))

    @property
    def has_kms(self) -> bool:
        """Whether it is known where keys are: AWS has its own, and for other servers AWS_ENDPOINT_URL_KMS names it, as
        AWS' own tools take it."""
        return self.is_aws or "AWS_ENDPOINT_URL_KMS" in os.environ

    def request(self, operation: Operation, url: str, **parameters: Any) -> Answer:
        """A request's answer; `url` is the store's, for messages. Raises S3Failure."""
        return self._call(getattr(_client(self, os.getpid()), operation), url, parameters)

    def describe_key(self, key: str, url: str) -> Answer:
        """What KMS says of a key. Raises S3Failure."""
        return self._call(_kms_client(self, os.getpid()).describe_key, url, {"KeyId": key})

    def _call(self, call: Callable[..., Answer], url: str, parameters: Mapping[str, Any]) -> Answer:
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            return Told(call(**parameters), url)
        except ClientError as error:
            raise _refusal(error, url) from None
        except BotoCoreError as error:
            raise connection_failure(error, url, self.endpoint) from None
        except (OverflowError, ResponseParserError, ValueError) as error:
            message = f"{url} gives an answer that cannot be understood ({type(error).__name__})."
            raise S3Failure(ErrorCode.UNREADABLE, message) from None

    def body(self, answer: Answer, url: str) -> bytes:
        """The bytes that come with an answer. Raises S3Failure."""
        from botocore.exceptions import BotoCoreError
        from urllib3.exceptions import HTTPError

        try:
            with closing(answer["Body"]) as body:
                data: bytes = body.read()
        except (BotoCoreError, HTTPError) as error:
            raise connection_failure(error, url, self.endpoint) from None
        return data


def s3_connection(options: Mapping[str, str]) -> S3Connection:
    """The settings that `--store-option`s give. Raises TieredctlError for an invalid value."""
    style = options.get("addressing-style", "auto")
    if style not in ADDRESSING_STYLES:
        hint = f"Give one of {', '.join(ADDRESSING_STYLES)}."
        raise TieredctlError(ErrorCode.USAGE, f"The store option addressing-style is {style!r}.", hint=hint)
    endpoint = endpoint_option(options.get("endpoint"))
    return S3Connection(endpoint, options.get("region"), options.get("profile"), style, route(options))


@cache
def _client(connection: S3Connection, process: int) -> Any:  # noqa: ARG001 - a fork may not share connections
    from botocore.config import Config

    checksums = "when_supported" if connection.endpoint is None else "when_required"
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        max_pool_connections=2 * MOST_REQUESTS_AT_ONCE,
        # tieredctl.storage.retrying knows what may be tried again, and how long to wait.
        retries={"total_max_attempts": 1},
        s3={"addressing_style": connection.addressing_style},
        request_checksum_calculation=checksums,
        # Some servers answer a ranged read with the whole object's checksum.
        response_checksum_validation=checksums,
        proxies=connection.route.proxies,
    )
    client = _session_client(connection, "s3", connection.endpoint, config)
    client.meta.events.register("before-parse.s3.ListObjectsV2", read_listing_page)
    client.meta.events.register("before-parse.s3", note_root)
    client.meta.events.register("before-send.s3", partial(_demand_exact_path, connection.route))
    return client


def _demand_exact_path(way: Route, request: Any, **_: Any) -> None:
    """Handles botocore's event `before-send.s3`. Raises S3Failure for a request whose path a proxy of `http:` would get
    shortened: urllib3 takes `a/./b` in a whole URL for `a/b`, which is another object's key."""
    from botocore.utils import get_environ_proxies

    parts = urlsplit(request.url)
    if parts.scheme != "http" or _SHORTENED.isdisjoint(parts.path.split("/")):
        return
    if way.proxies or get_environ_proxies(request.url).get("http"):
        message = "A proxy cannot be asked by http: for a key with . or .. between slashes: it would be another key."
        hint = "Use an endpoint of https:, or have the server asked without the proxy (NO_PROXY)."
        raise S3Failure(ErrorCode.UNREADABLE, message, hint=hint)


@cache
def _kms_client(connection: S3Connection, process: int) -> Any:  # noqa: ARG001 - a fork may not share connections
    from botocore.config import Config

    config = Config(
        connect_timeout=_CONNECT_SECONDS, retries={"total_max_attempts": 1}, proxies=connection.route.proxies
    )
    return _session_client(connection, "kms", None, config)


def _session_client(connection: S3Connection, service: str, endpoint: str | None, config: Any) -> Any:
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        session = boto3.Session(profile_name=connection.profile, region_name=connection.region)
        # Many servers need no region, but a signature names one.
        region = session.region_name or ("us-east-1" if connection.endpoint else None)
        # Keys are elsewhere: an authority of the store alone is none of theirs.
        trusted = connection.route.ca_bundle if service == "s3" else None
        return session.client(service, endpoint_url=endpoint, region_name=region, config=config, verify=trusted)
    except (BotoCoreError, ValueError) as error:
        raise connection_failure(error, "The s3: store", connection.endpoint) from None


def connection_failure(error: Exception, url: str, endpoint: str | None) -> S3Failure:
    """Why no server answered, or no request was sent."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if "ProfileNotFound" in kinds:
        return S3Failure(ErrorCode.USAGE, f"{error}.", hint="`aws configure list-profiles` lists the profiles.")
    if kinds & _NO_CREDENTIALS:
        return S3Failure(ErrorCode.NO_CREDENTIALS, f"There are no credentials for {url} ({type(error).__name__}).")
    if kinds & _SETTINGS_AT_FAULT or isinstance(error, ValueError):
        hint = "Check the store options endpoint and region, and AWS' own configuration."
        return S3Failure(
            ErrorCode.USAGE, f"{url} cannot be reached with these settings ({type(error).__name__}).", hint=hint
        )
    if kinds & _NO_ANSWER:
        in_the_way = obstacle(error, endpoint or url, "AWS_CA_BUNDLE")
        if in_the_way is not None:
            return S3Failure(in_the_way.code, f"{in_the_way.message}.", hint=in_the_way.hint)
        at = f" at {endpoint}" if endpoint else ""
        return S3Failure(ErrorCode.STORE_UNREACHABLE, f"{url} does not answer{at} ({type(error).__name__}).")
    return S3Failure(ErrorCode.UNREADABLE, f"No request could be sent to {url} ({type(error).__name__}).")


def refusal(reason: str, status: int, url: str) -> S3Failure:
    """The failure that an error code and HTTP status mean. The server's message is not repeated: it may quote the
    request."""
    if reason == "NoSuchBucket":
        return S3Failure(ErrorCode.BUCKET_MISSING, f"There is no bucket for {url}.", reason=reason)
    if reason in _OTHER_REGION:
        hint = "Name its region with --store-option region=REGION."
        return S3Failure(ErrorCode.BUCKET_MISSING, f"{url} is in another region.", reason=reason, hint=hint)
    if reason in _THROTTLED or status in {429, 503}:
        return S3Failure(ErrorCode.STORE_THROTTLED, f"{url} throttles requests ({reason}).", reason=reason)
    if reason in _UNKNOWN_USER:
        return S3Failure(
            ErrorCode.STORE_FORBIDDEN, f"{url} does not accept these credentials ({reason}).", reason=reason
        )
    if reason in ("AccessDenied", "AccessDeniedException") or status in {401, 403}:
        return S3Failure(ErrorCode.STORE_FORBIDDEN, f"{url} denies access ({reason}).", reason=reason)
    if reason == _NOT_IMPLEMENTED or status == 501:
        return S3Failure(
            ErrorCode.UNREADABLE, f"{url} does not support this request ({reason}).", reason=reason, hint=REFUSAL_HINT
        )
    if status >= 500 or reason in {"InternalError", "RequestTimeout"}:
        return S3Failure(ErrorCode.STORE_UNREACHABLE, f"{url} failed to answer ({reason}).", reason=reason)
    return S3Failure(ErrorCode.UNREADABLE, f"{url} refused the request ({reason}).", reason=reason, hint=REFUSAL_HINT)


def _refusal(error: ClientError, url: str) -> S3Failure:
    response: Answer = error.response
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return refusal(str(response.get("Error", {}).get("Code", status)), status, url)
