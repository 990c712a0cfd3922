"""Schemas of a registry that speaks as Confluent's does: GET /schemas/ids/{id}."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from tieredctl.errors import ErrorCode, TieredctlError

USER_INFO = "TIEREDCTL_SCHEMA_REGISTRY_USER_INFO"
"""The variable of the environment with `USER:PASSWORD`."""
_SECONDS = 10
_LARGEST_BYTES = 16 << 20
_NOT_FOUND = 404
_REFUSED = (401, 403)


class _NoRedirect(HTTPRedirectHandler):
    """Credentials are for the registry that was named."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class SchemaRegistry:
    """Asks a registry; remembers nothing."""

    def __init__(self, url: str, user_info: str | None = None) -> None:
        """`user_info` is `USER:PASSWORD`, for HTTP's basic authentication. Raises TieredctlError `usage` for what is no
        URL of HTTP, and for one that has a user or a password."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if host is None or parts.scheme not in ("http", "https"):
            hint = "Write it as http://HOST:PORT."
            raise TieredctlError(ErrorCode.USAGE, "--schema-registry is not a URL of HTTP.", hint=hint)
        if "@" in parts.netloc:
            hint = f"Other users see command lines: put USER:PASSWORD into {USER_INFO}."
            raise TieredctlError(ErrorCode.USAGE, "--schema-registry takes no user and no password.", hint=hint)
        place = f"[{host}]" if ":" in host else host
        self.url = f"{parts.scheme}://{place}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if user_info is not None:
            self._headers["Authorization"] = f"Basic {b64encode(os.fsencode(user_info)).decode('ascii')}"
        self._opener = build_opener(_NoRedirect)

    def avro_schema(self, number: int) -> str | None:
        """The text of an Avro schema; None where the registry has none with this id, or one of another kind. Raises
        TieredctlError `registry-unreachable` or `registry-refused` where it does not answer."""
        try:
            with self._opener.open(
                Request(f"{self.url}/schemas/ids/{number}", headers=self._headers), timeout=_SECONDS
            ) as answer:
                data = answer.read(_LARGEST_BYTES + 1)
            document = json.loads(data)
            schema, kind = document["schema"], document.get("schemaType", "AVRO")
            if len(data) > _LARGEST_BYTES or not isinstance(schema, str):
                raise ValueError
        except HTTPError as error:
            error.close()
            if error.code == _NOT_FOUND:
                return None
            code = ErrorCode.REGISTRY_REFUSED if error.code in _REFUSED else ErrorCode.REGISTRY_UNREACHABLE
            raise TieredctlError(code, f"The schema registry {self.url} answered with status {error.code}.") from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            message = f"The schema registry {self.url} does not answer: {reason}."
            raise TieredctlError(ErrorCode.REGISTRY_UNREACHABLE, message) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            message = f"The schema registry {self.url} answered with something else than a schema."
            raise TieredctlError(ErrorCode.REGISTRY_UNREACHABLE, message) from None
        return schema if kind == "AVRO" else None
