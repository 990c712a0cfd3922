"""What is kept of an unexpected error for its report, without secrets, and without the values of variables. Commands
keep it in a file; Spark jobs leave it in the driver's log, which outlives the driver's disk."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tieredctl import __version__
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.process.redaction import redacted, redacted_words, remember_secrets

_PACKAGES = ("typer", "numpy", "pyarrow", "confluent-kafka", "kafka-python", "psycopg", "pyspark")
_SETTINGS = ("TIEREDCTL_", "AWS_", "GOOGLE_", "KAFKA_", "PG", "PYTHON", "SPARK_", "JAVA_", "LC_", "LANG", "XDG_", "TZ")
_PROGRAM = "tieredctl"
_OWN_PLACE = re.compile(rf"/{_PROGRAM}(_\w+)?/")
_MOST_KEPT = 20
_LONGEST_FAULT = 400
_LONGEST_MESSAGE = 4_000


class FaultElsewhere(Exception):
    """An unforeseen error in another process: what `fault_error` said of it there, and its traceback as a text."""

    def __init__(self, message: str, traceback_text: str) -> None:
        super().__init__(message)
        self.add_note(traceback_text)


def fault_error(fault: BaseException, hint: str | None) -> TieredctlError:
    """What the user is told of an unforeseen error: the place in tieredctl where it arose, and where there is more."""
    if isinstance(fault, FaultElsewhere):
        return TieredctlError(ErrorCode.FAULT, redacted(str(fault)), hint=hint)
    places = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(fault.__traceback__)]
    own = [place for place in places if _OWN_PLACE.search(place)] or places or ["an unknown place"]
    what = redacted(repr(fault))[:_LONGEST_FAULT]
    return TieredctlError(ErrorCode.FAULT, f"{_PROGRAM} {__version__} has a fault at {own[-1]}: {what}", hint=hint)


def write_crash_file(fault: BaseException, words: Sequence[str]) -> Path | None:
    """Keeps `crash_text` in a file for only its owner to read, and removes all but the newest few. Its path; None where
    no folder takes it."""
    text = crash_text(fault, words)
    name = f"{time.strftime('%Y-%m-%dT%H-%M-%SZ', time.gmtime())}-{os.getpid()}"
    for folder, prefix in _folders():
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for number in range(_MOST_KEPT + 1):
                path = folder / f"{prefix}{name}{f'-{number}' if number else ''}.txt"
                with suppress(FileExistsError):
                    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
                    try:
                        with open(opened, "w", encoding="utf-8", errors="backslashreplace") as file:
                            file.write(text)
                    except OSError:
                        path.unlink()
                        raise
                    _keep_newest(folder, prefix)
                    return path
    return None


def crash_folder() -> Path:
    """Where crash files are kept, if the user may write there."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / _PROGRAM / "crashes"


def crash_files() -> list[Path]:
    """The crash files of this user, oldest first."""
    paths: list[Path] = []
    for folder, prefix in _folders():
        paths += _own_files(folder, prefix)
    return paths


def crash_text(fault: BaseException, words: Sequence[str]) -> str:
    """All that a report needs of an error, in a command line of these words, the program among them."""
    from tieredctl.model.pasteable import quoted

    remember_secrets(os.environ)
    traceback_text = traceback.TracebackException.from_exception(fault, lookup_lines=True, capture_locals=False)
    trace = "".join(_cut(redacted(line)) for line in traceback_text.format())  # half a secret would not be known as one
    lines = [
        f"{_PROGRAM} {__version__} met an unexpected error at {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} UTC.",
        "",
        f"command   {' '.join(map(quoted, redacted_words(words)))}",
        f"python    {platform.python_version()} ({sys.executable})",
        f"platform  {platform.platform()}",
        *(f"package   {package}" for package in versions()),
        "",
        "Variables that are set (values are left out):",
        *(f"  {name}" for name in sorted(os.environ) if name.startswith(_SETTINGS)),
        "",
        redacted(trace).rstrip(),
    ]
    return "\n".join(lines) + "\n"


def versions() -> Iterator[str]:
    """The installed packages that matter, with their versions."""
    from tieredctl.ports.store_kinds import store_kinds

    libraries = [kind.library.package for kind in store_kinds() if kind.library is not None]
    for package in (*_PACKAGES, *libraries):
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            yield f"{package} is not installed"


def _cut(text: str) -> str:
    if len(text) <= _LONGEST_MESSAGE:
        return text
    return f"{text[:_LONGEST_MESSAGE]} … ({len(text)} characters)\n"


def _folders() -> Iterator[tuple[Path, str]]:
    """Where the files may be, and how their names begin."""
    yield crash_folder(), "crash-"
    with suppress(OSError):  # on a full disk no folder is one for temporary files
        yield Path(tempfile.gettempdir()), f"{_PROGRAM}-{os.getuid()}-crash-"


def _own_files(folder: Path, prefix: str) -> list[Path]:
    with suppress(OSError):
        candidates = [path for path in folder.iterdir() if path.name.startswith(prefix) and path.suffix == ".txt"]
        own = [path for path in candidates if path.lstat().st_uid == os.getuid() and not path.is_symlink()]
        return sorted(own, key=lambda path: path.lstat().st_mtime_ns)
    return []


def _keep_newest(folder: Path, prefix: str) -> None:
    for path in _own_files(folder, prefix)[:-_MOST_KEPT]:
        with suppress(OSError):
            path.unlink()
