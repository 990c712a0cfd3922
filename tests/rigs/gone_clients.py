"""What servers of the tests do about clients that have gone."""

from __future__ import annotations

import socketserver
import sys
from typing import Any


class SilentAboutGoneClients(socketserver.BaseServer):
    """A server, with this before its other bases, that says nothing of them: it would be said whenever a connection's
    thread comes to it, among what a test compares."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)
