"""An OAuth token endpoint: one question, one answer, over the standard library's HTTP."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException
from threading import Thread
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.properties import unusable
from tieredctl.kafka.sign_in.tokens import Token, demand_lasting, ends_at, finite

_SECONDS, _SECONDS_IN_ALL = 10.0, 30.0
_LARGEST_ANSWER = 1 << 20
_SECONDS_IF_UNSAID = 60.0
_REFUSING = (400, 401, 403)

_Answer = TypeVar("_Answer")


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """None: another server must not be shown the secret."""


class TokenEndpoint:
    """Where tokens are fetched: an http or https URL."""

    def __init__(self, url: str, context: ssl.SSLContext) -> None:
        _demand_url(url)
        self._url = url
        self._opener = build_opener(HTTPSHandler(context=context), _NoRedirect())

    def token(self, form: Mapping[str, str], headers: Mapping[str, str]) -> Token:
        """The token for a form. Raises TieredctlError `broker-refused` and `broker-unreachable`."""
        answer = self._answer(form, headers)
        value = answer.get("access_token") or answer.get("id_token")
        if not isinstance(value, str) or not value or any(char.isspace() or char < " " for char in value):
            raise TieredctlError(ErrorCode.BROKER_REFUSED, f"The token endpoint {self._url} answered without a token.")
        stated = ends_at(value)
        if stated is None:
            seconds = finite(answer.get("expires_in"))
            stated = time.time() + (_SECONDS_IF_UNSAID if seconds is None else seconds)
        hint = "Check this machine's clock, and the lifetime of the issuer's tokens."
        return demand_lasting(Token(value, stated), f"The token of the token endpoint {self._url}", hint)

    def _answer(self, form: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, Any]:
        accepted = {"Accept": "application/json", "Cache-Control": "no-cache"}
        request = Request(self._url, urlencode(form).encode(), {**accepted, **headers})
        try:
            status, body = _within(_SECONDS_IN_ALL, lambda: self._exchanged(request))
        except URLError as error:
            raise self._unreachable(error.reason) from None
        except (HTTPException, OSError) as error:
            raise self._unreachable(error) from None
        if status != HTTPStatus.OK:
            raise self._refusal(status, body)
        return _document(body)

    def _exchanged(self, request: Request) -> tuple[int, bytes]:
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                return HTTPStatus.OK, answer.read(_LARGEST_ANSWER)
        except HTTPError as error:
            with error, suppress(HTTPException, OSError):  # a refusal is one, whatever becomes of its reason
                return error.code, error.read(_LARGEST_ANSWER)
            return error.code, b""

    def _refusal(self, status: int, body: bytes) -> TieredctlError:
        stated = _document(body).get("error")
        reason = f"{stated} (HTTP {status})" if isinstance(stated, str) and stated else f"HTTP {status}"
        if status not in _REFUSING:
            return self._unreachable(reason)
        hint = "Check the client's id, secret or assertion, and the scope, in --command-config. Only one was tried."
        return TieredctlError(
            ErrorCode.BROKER_REFUSED, f"The token endpoint {self._url} refused the client: {reason}.", hint=hint
        )

    def _unreachable(self, reason: object) -> TieredctlError:
        if isinstance(reason, ssl.SSLCertVerificationError):
            text = f"its certificate is not trusted: {reason.verify_message.rstrip('.')}"
            hint = "Set ssl.truststore.location in --command-config, or in sasl.jaas.config, to a store that trusts it."
        else:
            text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            hint = "Check sasl.oauthbearer.token.endpoint.url in --command-config, and proxies."
        message = f"The token endpoint {self._url} gave no token: {str(text).lower()}."
        return TieredctlError(ErrorCode.BROKER_UNREACHABLE, message, hint=hint)


def _within(seconds: float, ask: Callable[[], _Answer]) -> _Answer:
    """The result of a question. Raises TimeoutError after so many seconds, however slowly an answer goes on: urllib's
    own limit is for each read."""
    answer = Future[_Answer]()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - raised where the answer is awaited
            answer.set_exception(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not answer.done():
        raise TimeoutError("timed out")
    return answer.result()


def _demand_url(url: str) -> None:
    """Raises TieredctlError `usage`, which does not repeat the URL: it may hold a password."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise unusable("The token endpoint is not an http or https URL")
    if "@" in parts.netloc:
        hint = "Give the client's id and secret in sasl.jaas.config."
        raise unusable("The URL of the token endpoint has a user or a password", hint)


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
