"""Python imports this by itself where it finds it: the process tells of each file that it is about to touch, and of
each request that it is about to send, and waits.

`TIEREDCTL_CHAOS` says of which folder, and through which two pipes: FOLDER:TELL:WAIT. `TIEREDCTL_CHAOS_SKEW` says how
many seconds its clock is ahead.
"""

from __future__ import annotations

import os
import sys
import time

_TOUCHING = frozenset({"open", "os.link", "os.mkdir", "os.remove", "os.rename", "os.scandir", "os.truncate"})
_REQUEST = "http.client.send"
_AGES = "/ages/"
"""What a server should know; no part of the command looks there."""


def _watch(watched: str, tell: int, wait: int) -> None:
    def look(event: str, arguments: tuple[object, ...]) -> None:
        path = str(arguments[0]) if event in _TOUCHING else ""
        if event == _REQUEST or (path.startswith(watched) and _AGES not in path):
            os.write(tell, f"{event} {path}\n".encode())
            os.read(wait, 1)

    sys.addaudithook(look)


def _skew(seconds: int) -> None:
    right_ns = time.time_ns
    time.time_ns = lambda: right_ns() + seconds * 1_000_000_000
    time.time = lambda: time.time_ns() / 1_000_000_000


if "TIEREDCTL_CHAOS_SKEW" in os.environ:
    _skew(int(os.environ["TIEREDCTL_CHAOS_SKEW"]))
if "TIEREDCTL_CHAOS" in os.environ:
    _folder, _tell, _wait = os.environ["TIEREDCTL_CHAOS"].split(":")
    _watch(_folder, int(_tell), int(_wait))
