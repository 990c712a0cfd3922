"""An OAuth token endpoint: one question, one answer, over the standard library's HTTP."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.properties import unusable
from tieredctl.kafka.sign_in.tokens import Token, ends_at

_SECONDS = 10.0
_LARGEST_ANSWER = 1 << 20
_SECONDS_IF_UNSAID = 60.0
_REFUSING = (400, 401, 403)


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """None: another server must not be shown the secret."""


class TokenEndpoint:
    """Where tokens are fetched: an http or https URL."""

    def __init__(self, url: str, context: ssl.SSLContext) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise unusable(f"The token endpoint {url} is not an http or https URL")
        self._url = url
        self._opener = build_opener(HTTPSHandler(context=context), _NoRedirect())

    def token(self, form: Mapping[str, str], headers: Mapping[str, str]) -> Token:
        """The token for a form. Raises TieredctlError `broker-refused` and `broker-unreachable`."""
        answer = self._answer(form, headers)
        value = answer.get("access_token") or answer.get("id_token")
        if not isinstance(value, str) or not value or any(char.isspace() or char < " " for char in value):
            raise TieredctlError(ErrorCode.BROKER_REFUSED, f"The token endpoint {self._url} answered without a token.")
        seconds = answer.get("expires_in")
        stated = ends_at(value)
        if stated is None:
            stated = time.time() + (float(seconds) if isinstance(seconds, int | float) else _SECONDS_IF_UNSAID)
        return Token(value, stated)

    def _answer(self, form: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, Any]:
        accepted = {"Accept": "application/json", "Cache-Control": "no-cache"}
        request = Request(self._url, urlencode(form).encode(), {**accepted, **headers})
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                body = answer.read(_LARGEST_ANSWER)
        except HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except URLError as error:
            raise self._unreachable(error.reason) from None
        except (HTTPException, OSError) as error:
            raise self._unreachable(error) from None
        return _document(body)

    def _refusal(self, error: HTTPError) -> TieredctlError:
        stated = _document(error.read(_LARGEST_ANSWER)).get("error")
        reason = f"{stated} (HTTP {error.code})" if isinstance(stated, str) and stated else f"HTTP {error.code}"
        if error.code not in _REFUSING:
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


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
