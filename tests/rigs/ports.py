"""TCP ports for servers that tests start."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

# below the range that systems hand to outgoing connections, so that a stopped server finds its port free again
CANDIDATE_PORTS = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """`count` different ports of localhost that nobody listens on now."""
    ports: list[int] = []
    with ExitStack() as held:
        while len(ports) < count:
            port = random.choice(CANDIDATE_PORTS)
            listener = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
    return ports


def accepts_connections(port: int) -> bool:
    """Whether a server on localhost accepts connections on `port`."""
    try:
        with socket.create_connection(("localhost", port), timeout=1):
            return True
    except OSError:
        return False
