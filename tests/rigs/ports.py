"""TCP ports for servers that tests start."""

from __future__ import annotations

import os
import random
import re
import socket
from collections import deque
from contextlib import ExitStack

_PORTS_A_WORKER, _MOST_WORKERS = 1_500, 8
_WORKER = int(re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", "")) or 0) % _MOST_WORKERS
_FIRST_PORT = 20_000 + _WORKER * _PORTS_A_WORKER
CANDIDATE_PORTS = range(_FIRST_PORT, _FIRST_PORT + _PORTS_A_WORKER)
"""Below the range that systems hand to outgoing connections, so that a stopped server finds its port free again; each
test process has its own, since a server binds its ports seconds after they were found free."""
_given_lately: deque[int] = deque(maxlen=300)
# Hypothesis seeds the other one.
_chance = random.SystemRandom()


def free_ports(count: int) -> list[int]:
    """`count` different ports of localhost that nobody listens on now, and that were not given to anybody lately."""
    ports: list[int] = []
    with ExitStack() as held:
        while len(ports) < count:
            port = _chance.choice(CANDIDATE_PORTS)
            if port in _given_lately:
                continue
            listener = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
            _given_lately.append(port)
    return ports


def accepts_connections(port: int) -> bool:
    """Whether a server on localhost accepts connections on `port`."""
    try:
        with socket.create_connection(("localhost", port), timeout=1):
            return True
    except OSError:
        return False
