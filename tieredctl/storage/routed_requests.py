"""Connections of `requests` for one store: as many as it asks at once, by its own route."""

from __future__ import annotations

from typing import Any

from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter

from tieredctl.storage.bucket_store import MOST_REQUESTS_AT_ONCE
from tieredctl.storage.route import Route


class _RoutedAdapter(HTTPAdapter):
    """Sends by the store's own route whatever the session has taken from the environment, which it prefers."""

    def __init__(self, way: Route) -> None:
        super().__init__(pool_maxsize=2 * MOST_REQUESTS_AT_ONCE)
        self.way = way

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> Response:
        trusted, through = self.way.ca_bundle or verify, self.way.proxies or proxies
        return super().send(request, stream, timeout, trusted, cert, through)


def send_by(session: Session, way: Route) -> None:
    """Has a session send all requests by a route."""
    adapter = _RoutedAdapter(way)
    for scheme in ("https://", "http://"):
        session.mount(scheme, adapter)
