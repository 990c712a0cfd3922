"""Python imports this by itself where it finds it: the process tells of each file that it is about to make, rename,
link or remove below a folder, and waits; and from the first of these on, of calls of functions of extension modules.

`TIEREDCTL_STOPPING` says of which folder, through which two pipes, and which functions: FOLDER:TELL:WAIT:NAME,NAME. The
answer is `.` to go on, or `F` where the disk is full: then no file can be made.
"""

from __future__ import annotations

import errno
import os
import sys
from types import FrameType

_PLACES = {"os.remove": (0, 1), "os.rename": (1, 3), "os.link": (1, 3)}
"""Where an event has the path that matters, and the folder that it is relative to."""


def _touched(event: str, arguments: tuple[object, ...]) -> str | None:
    """What is about to be touched; of a new file that was opened in a folder of its own, its name alone."""
    if event == "open":
        path, _, flags = arguments
        return str(path) if isinstance(path, str) and isinstance(flags, int) and flags & os.O_CREAT else None
    if event not in _PLACES:
        return None
    path, folder = (arguments[place] for place in _PLACES[event])
    if isinstance(folder, int) and folder >= 0:
        return f"{os.readlink(f'/proc/self/fd/{folder}')}/{path}"
    return str(path)


def _watch(watched: str, tell: int, wait: int, calls: frozenset[str]) -> None:
    def answer(told: str) -> bytes:
        os.write(tell, f"{told}\n".encode())
        return os.read(wait, 1)

    def look(event: str, arguments: tuple[object, ...]) -> None:
        path = _touched(event, arguments)
        if path is None or (path.startswith("/") and not path.startswith(watched)):
            return
        if answer(f"{event.removeprefix('os.')} {path.removeprefix(watched)}") == b"F" and event == "open":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        if calls:
            sys.setprofile(look_at_call)

    def look_at_call(_frame: FrameType, event: str, function: object) -> None:
        name = getattr(function, "__name__", "")
        if event == "c_call" and name in calls:
            answer(f"call {name}")

    sys.addaudithook(look)


if "TIEREDCTL_STOPPING" in os.environ:
    _folder, _tell, _wait, _calls = os.environ["TIEREDCTL_STOPPING"].split(":")
    _watch(_folder + "/", int(_tell), int(_wait), frozenset(filter(None, _calls.split(","))))
