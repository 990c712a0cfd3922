"""`--store-option endpoint=…`: the address of a server that is not the cloud's own."""

from __future__ import annotations

from urllib.parse import urlsplit

from tieredctl.errors import ErrorCode, TieredctlError


def endpoint_option(text: str | None) -> str | None:
    """The endpoint without a trailing slash. Raises TieredctlError `usage`, which repeats no password."""
    if text is None:
        return None
    hint = "Write it as http://HOST:PORT or https://HOST."
    try:
        parts = urlsplit(text)
        wrong = parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0
    except ValueError:
        raise TieredctlError(ErrorCode.USAGE, "The store option endpoint is not a URL.", hint=hint) from None
    if "@" in text:
        raise TieredctlError(
            ErrorCode.USAGE, "The store option endpoint may not contain a user or password.", hint=hint
        )
    if wrong or parts.query or parts.fragment:
        raise TieredctlError(
            ErrorCode.USAGE, f"The store option endpoint is {text!r}, which is not a server's URL.", hint=hint
        )
    return text.rstrip("/")
