"""Python imports this by itself where it finds it: the process tells of each file that it is about to touch, and waits.

`TIEREDCTL_CHAOS` says of which folder, and through which two pipes: FOLDER:TELL:WAIT.
"""

from __future__ import annotations

import os
import sys

_TOUCHING = frozenset({"open", "os.link", "os.mkdir", "os.remove", "os.rename", "os.scandir", "os.truncate"})


def _watch(watched: str, tell: int, wait: int) -> None:
    def look(event: str, arguments: tuple[object, ...]) -> None:
        if event in _TOUCHING and str(arguments[0]).startswith(watched):
            os.write(tell, f"{event} {arguments[0]}\n".encode())
            os.read(wait, 1)

    sys.addaudithook(look)


if "TIEREDCTL_CHAOS" in os.environ:
    _folder, _tell, _wait = os.environ["TIEREDCTL_CHAOS"].split(":")
    _watch(_folder, int(_tell), int(_wait))
