"""How HDFS is reached: requests by WebHDFS, the REST interface of its namenodes, and what its failures mean.

A namenode answers questions about names itself, and sends whoever wants bytes to a datanode. Hadoop's documentation of
WebHDFS has the operations. HttpFS, its gateway, has the same, but was not tried.
"""

from __future__ import annotations

import getpass
import json
import os
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize
from urllib.parse import quote, unquote, urlencode, urlsplit

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.storage.on_the_way import obstacle

if TYPE_CHECKING:
    import urllib3

TOKEN_VARIABLE, USER_VARIABLE = "HADOOP_TOKEN", "HADOOP_USER_NAME"
_TRUST_VARIABLE = "SSL_CERT_FILE"
"""Where OpenSSL reads the authorities that it trusts."""
_CONNECT_SECONDS, _READ_SECONDS = 10, 120
_MOST_CONNECTIONS = 32
_MOST_DATANODES = 3
"""How many are asked for the same bytes in one attempt."""
_MOST_BROKEN_OFF = 3
"""Answers to the same question that end too early."""
_ROOT = "/webhdfs/v1"
_NO_FOLDER = "ParentNotDirectoryException"
"""The reason where a path leads through a file."""
_MISSING = "FileNotFoundException"
_LONGEST_REASON = 100
_NOT_ACTIVE = {"StandbyException", "ObserverRetryOnActiveException"}
_PASSING = {"RetriableException", "SafeModeException"}
_DENIED = {"AccessControlException", "AuthorizationException", _NO_FOLDER}
# Namenodes call a token that has ended, or is none, a SecurityException.
_WRONG_TOKEN = {"InvalidToken", "SecretManager$InvalidToken", "AuthenticationException", "SecurityException"}
_NO_ROOM = {"NSQuotaExceededException", "DSQuotaExceededException", "QuotaExceededException"}

_REDIRECTIONS = {302, 307}

Body = bytes | Iterable[bytes]
Parameters = Mapping[str, str | int]
NO_PARAMETERS: Parameters = MappingProxyType({})


class Operation(NamedTuple):
    """What a namenode is asked to do with an absolute path; `size` is that of the body in bytes."""

    method: str
    name: str
    path: str
    parameters: Parameters = NO_PARAMETERS
    body: Body | None = None
    size: int = 0


class HdfsFailure(TieredctlError):
    """What went wrong with a request, and the name of Hadoop's exception; `reason` is empty where none was named."""

    def __init__(self, code: ErrorCode, message: str, *, reason: str = "", hint: str | None = None) -> None:
        super().__init__(code, message, hint=hint)
        self.reason = reason

    @property
    def is_missing(self) -> bool:
        """There is no such path. A server that answers 404 without this word may be anything."""
        return self.reason in {_MISSING, _NO_FOLDER}

    @property
    def is_elsewhere(self) -> bool:
        """The other namenode may answer: this one did nothing."""
        return self.reason in _NOT_ACTIVE


class _NotReached(HdfsFailure):
    """There was no connection, so that nothing was sent."""

    @property
    def is_elsewhere(self) -> bool:
        return True


class _BrokenOff(HdfsFailure):
    """The answer ended before its end."""


class Answer(NamedTuple):
    """What a namenode or a datanode answered. Names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HdfsConnection:
    """The settings of a connection, without the delegation token: that is in TOKEN_VARIABLE."""

    namenodes: tuple[str, ...]
    """The URLs of their web servers; of several, one is active."""
    user: str | None = None
    """Who is named where no token is given; None for this process's user."""
    ca_bundle: str | None = None
    """The path of a file of authorities in PEM: the only ones that are trusted. None for the system's."""
    number: int = 0
    """Tells connections with the same settings apart."""

    def another(self) -> HdfsConnection:
        """Another connection with the same settings."""
        return replace(self, number=self.number + 1)

    def request(self, asked: Operation, url: str) -> Answer:
        """The answer to an operation; `url` is the store's, for messages. Raises HdfsFailure."""
        client, left = _client(self, os.getpid()), len(self.namenodes)
        while True:
            active, left = client.active, left - 1
            try:
                return self._ask(client, self.namenodes[active], asked, url)
            except HdfsFailure as failure:
                if failure.code is ErrorCode.STORE_UNREACHABLE:
                    client.leave(active)
                if not failure.is_elsewhere or not left:
                    raise

    def _ask(self, client: _Client, namenode: str, asked: Operation, url: str) -> Answer:
        address = f"{namenode}{_ROOT}{quote(asked.path)}"
        parameters = {"op": asked.name, **self._signature(url), **asked.parameters}
        silent: list[str] = []
        broken_off = 0
        while True:
            more = {"excludedatanodes": ",".join(silent)} if silent else {}
            answer = client.send(asked.method, f"{address}?{urlencode({**parameters, **more})}", url)
            if answer.status not in _REDIRECTIONS:
                return _demand_success(answer, url)
            datanode = _to_path(_redirection(address, answer, url), asked.path)
            try:
                return _demand_success(client.send(asked.method, datanode, url, asked.body, asked.size), url)
            except _NotReached as failure:
                silent.append(urlsplit(datanode).netloc)
                if len(silent) == _MOST_DATANODES:
                    raise HdfsFailure(failure.code, str(failure)) from None
            except _BrokenOff:
                # So ends whatever a datanode can read of no replica: that concerns this file alone.
                broken_off += 1
                if asked.body is not None:
                    raise
                if broken_off == _MOST_BROKEN_OFF:
                    message = f"{url} breaks off each time while it reads {asked.path}: a block may be damaged or lost."
                    raise HdfsFailure(ErrorCode.UNREADABLE, message) from None

    def _signature(self, url: str) -> dict[str, str]:
        token = os.environ.get(TOKEN_VARIABLE)
        if token:
            return {"delegation": token}
        try:
            return {"user.name": self.user or os.environ.get(USER_VARIABLE) or getpass.getuser()}
        except (KeyError, OSError):
            message = f"It is not known who asks {url}: this process's user has no name."
            raise HdfsFailure(ErrorCode.NO_CREDENTIALS, message, hint="Give --store-option user=NAME.") from None


class _Client:
    """The pooled connections of one process, and which namenode answered last."""

    def __init__(self, namenodes: int, ca_bundle: str | None) -> None:
        import urllib3

        self.active = 0
        self._namenodes = namenodes
        self._pool: urllib3.PoolManager = urllib3.PoolManager(
            maxsize=_MOST_CONNECTIONS,
            ssl_context=ssl.create_default_context(cafile=ca_bundle),
            retries=False,  # tieredctl retries what may be tried again
            timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS),
        )

    def leave(self, active: int) -> None:
        """Ask the next namenode from now on, unless somebody has seen to that."""
        if self.active == active:
            self.active = (active + 1) % self._namenodes

    def send(self, method: str, address: str, url: str, body: Body | None = None, size: int = 0) -> Answer:
        import urllib3.exceptions as wrong

        headers = {"Accept-Encoding": "identity"}
        if body is not None:
            headers |= {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        where = urlsplit(address).netloc
        try:
            answer = self._pool.request(method, address, body=body, headers=headers, redirect=False)
        except (wrong.NewConnectionError, wrong.ConnectTimeoutError) as error:
            message = f"{url} does not answer at {where} ({type(error).__name__})."
            raise _NotReached(ErrorCode.STORE_UNREACHABLE, message) from None
        except wrong.ProtocolError as error:
            message = f"{url} breaks off at {where} ({type(error).__name__})."
            raise _BrokenOff(ErrorCode.STORE_UNREACHABLE, message) from None
        except (wrong.HTTPError, OSError) as error:
            if (in_the_way := obstacle(error, where, _TRUST_VARIABLE)) is not None:
                raise HdfsFailure(in_the_way.code, f"{in_the_way.message}.", hint=in_the_way.hint) from None
            message = f"{url} does not answer at {where} ({type(error).__name__})."
            raise HdfsFailure(ErrorCode.STORE_UNREACHABLE, message) from None
        return Answer(answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.data)


@cache
def _client(connection: HdfsConnection, process: int) -> _Client:  # noqa: ARG001 - a fork may not share connections
    return _Client(len(connection.namenodes), connection.ca_bundle)


def _redirection(asked: str, answer: Answer, url: str) -> str:
    """Where a namenode sends to: never from a protected connection to one that is not."""
    place = answer.headers.get("location", "")
    allowed = {"https"} if asked.startswith("https:") else {"http", "https"}
    if urlsplit(place).scheme not in allowed:
        raise HdfsFailure(ErrorCode.UNREADABLE, f"{url} sends to another kind of server for bytes.")
    return place


def _to_path(place: str, path: str) -> str:
    """The same place with the path that was asked for: Java's `URI.toASCIIString`, with which namenodes write where
    they send to, composes characters, and so names another file."""
    parts, composed = urlsplit(place), normalize("NFC", path)
    told = unquote(parts.path)
    if path == composed or not told.endswith(composed):
        return place
    return parts._replace(path=quote(told.removesuffix(composed) + path)).geturl()


def _demand_success(answer: Answer, url: str) -> Answer:
    if 200 <= answer.status < 300:
        return answer
    raise _refusal(answer, url)


def _refusal(answer: Answer, url: str) -> HdfsFailure:
    """The failure that an answer means. Hadoop's message is not repeated: it may be a whole stack."""
    reason = _reason(answer.body)
    why = reason or str(answer.status)

    def failed(code: ErrorCode, sentence: str, hint: str | None = None) -> HdfsFailure:
        return HdfsFailure(code, f"{url} {sentence} ({why}).", reason=reason, hint=hint)

    if reason in _NOT_ACTIVE:
        return failed(ErrorCode.STORE_UNREACHABLE, "has no active namenode among those that were asked")
    if reason in _WRONG_TOKEN or answer.status == 401:
        hint = f"Put a delegation token into {TOKEN_VARIABLE}: WebHDFS's GETDELEGATIONTOKEN tells one, as urlString."
        return failed(ErrorCode.NO_CREDENTIALS, "does not accept who is asking", hint)
    if reason in _DENIED or (answer.status == 403 and not reason):
        return failed(ErrorCode.STORE_FORBIDDEN, "denies access")
    if answer.status == 429 or (answer.status == 503 and not reason):
        return failed(ErrorCode.STORE_THROTTLED, "throttles requests")
    if reason in _NO_ROOM:
        return failed(ErrorCode.UNWRITABLE, "has no room left in a quota")
    if reason in _PASSING or (answer.status >= 500 and not reason):
        return failed(ErrorCode.STORE_UNREACHABLE, "failed to answer")
    return failed(ErrorCode.UNREADABLE, "refused the request")


def _reason(body: bytes) -> str:
    """The name of Hadoop's exception; empty for an answer that is none of its."""
    try:
        remote_exception = json.loads(body)["RemoteException"]
        reason, message = remote_exception["exception"], remote_exception.get("message")
    except (AttributeError, KeyError, TypeError, ValueError):
        return ""
    if not isinstance(reason, str) or len(reason) > _LONGEST_REASON:
        return ""
    # A path through a file is denied like one through a folder that is closed.
    return _NO_FOLDER if isinstance(message, str) and message.endswith("(is not a directory)") else reason


def not_understood(url: str) -> HdfsFailure:
    """An answer that is none of WebHDFS."""
    return HdfsFailure(ErrorCode.UNREADABLE, f"{url} answers in a way that cannot be understood.")
