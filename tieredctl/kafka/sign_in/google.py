"""Google's Managed Kafka: an access token of the application's default credentials, in the shape of a JWT.

Source: com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler, and Google's own token provider for Python clients.
"""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from datetime import UTC
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.installation import missing_extra
from tieredctl.kafka.sign_in.bearer import BearerSignIn
from tieredctl.kafka.sign_in.tokens import Token, TokenSource

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_HEADER = {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}


def googles_sign_in() -> BearerSignIn:
    """A sign-in by the application's default credentials, which are looked up when the first token is needed."""
    hint = "Check the account of the application default credentials, and its role on the cluster."
    return BearerSignIn(TokenSource(_token), {}, hint)


def _token() -> Token:
    try:
        import google.auth
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.auth.transport.requests import Request
    except ImportError:
        raise missing_extra("Signing in at Google needs google-auth, which is not installed.", "gs") from None
    try:
        found, _ = google.auth.default(scopes=[_SCOPE])
        credentials: Any = found
        credentials.refresh(Request())
    except GoogleAuthError as error:
        code = ErrorCode.BROKER_UNREACHABLE if isinstance(error, TransportError) else ErrorCode.BROKER_REFUSED
        hint = "Check GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`."
        raise TieredctlError(code, f"Google gave no access token: {_sentence(error)}.", hint=hint) from None
    account = getattr(credentials, "service_account_email", None) or getattr(credentials, "account", "")
    if not account or credentials.expiry is None:
        raise TieredctlError(
            ErrorCode.BROKER_REFUSED,
            "Google's credentials do not say which account they are of.",
            hint="Use a service account, directly or impersonated.",
        )
    end = credentials.expiry.replace(tzinfo=UTC).timestamp()
    payload = {"exp": end, "iss": "Google", "iat": time.time(), "scope": "kafka", "sub": account}
    parts = (json.dumps(_HEADER), json.dumps(payload), credentials.token)
    return Token(".".join(_base64(part) for part in parts), end)


def _base64(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _sentence(error: Any) -> str:
    """The first line of an error; google-auth adds the server's whole answer."""
    text = str(error.args[0] if error.args else error) or type(error).__name__
    return text.splitlines()[0].rstrip(".")
