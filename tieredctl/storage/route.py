"""How the requests for one store travel, where the environment's way, which is one for all stores of a process, is not
theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from tieredctl.errors import ErrorCode, TieredctlError

ROUTE_OPTIONS = ("ca-bundle", "proxy")
"""Store options that each of the clouds has."""


@dataclass(frozen=True, slots=True)
class Route:
    """Authorities and a proxy of a store's own; None for the environment's."""

    ca_bundle: str | None = None
    """The path of a file of authorities in PEM: the only ones that are trusted."""
    proxy: str | None = None
    """The URL of a proxy, without a user."""

    @property
    def proxies(self) -> dict[str, str] | None:
        """The proxy by the scheme of what is asked for, as libraries take it."""
        return None if self.proxy is None else dict.fromkeys(("http", "https"), self.proxy)


BY_ENVIRONMENT = Route()


def route(options: Mapping[str, str]) -> Route:
    """The route that `--store-option`s give. Raises TieredctlError `usage` for a file that has no authorities, and for
    what is not the URL of a proxy."""
    return Route(_ca_bundle(options.get("ca-bundle")), _proxy(options.get("proxy")))


def _ca_bundle(path: str | None) -> str | None:
    if path is None:
        return None
    import ssl

    hint = "Name a file of certificates in PEM."
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cafile=path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
        message = f"The store option ca-bundle is {path!r}, of which no certificate can be read"
        sentence = f"{message} ({reason})." if reason else f"{message}."
        raise TieredctlError(ErrorCode.USAGE, sentence, hint=hint) from None
    return path


def _proxy(text: str | None) -> str | None:
    if text is None:
        return None
    hint = "Write it as http://HOST:PORT."
    if "@" in text:
        message = "The store option proxy may not contain a user or password."
        raise TieredctlError(ErrorCode.USAGE, message, hint="A proxy that wants them is named by HTTPS_PROXY.")
    try:
        parts = urlsplit(text)
        is_right = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port not in (None, 0)
    except ValueError:
        is_right = False
    if not is_right or parts.path.strip("/") or parts.query or parts.fragment:
        raise TieredctlError(
            ErrorCode.USAGE, f"The store option proxy is {text!r}, which is not the URL of a proxy.", hint=hint
        )
    return text.rstrip("/")
