"""`--store-option endpoint=…`: where a server listens that is not the cloud's own."""

from __future__ import annotations

from urllib.parse import urlsplit

from tieredctl.errors import ErrorCode, TieredctlError


def endpoint_option(text: str | None) -> str | None:
    """The endpoint without a slash at its end. Raises TieredctlError `usage`, which repeats no password."""
    if text is None:
        return None
    hint = "Write it as http://HOST:PORT or https://HOST."
    try:
        parts = urlsplit(text)
        wrong = parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0
    except ValueError:
        raise TieredctlError(ErrorCode.USAGE, "The store option endpoint is no URL.", hint=hint) from None
    if "@" in text:
        raise TieredctlError(ErrorCode.USAGE, "The store option endpoint may hold no user and password.", hint=hint)
    if wrong or parts.query or parts.fragment:
        raise TieredctlError(
            ErrorCode.USAGE, f"The store option endpoint is {text!r}, which is no server's URL.", hint=hint
        )
    return text.rstrip("/")
