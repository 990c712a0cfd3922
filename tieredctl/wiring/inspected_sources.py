"""Files that `store inspect` reads from elsewhere than a path: stdin, and objects of a store."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import NamedTemporaryFile

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.quantities import size_text
from tieredctl.ops.file_reading import LARGEST_BATCH_FILE
from tieredctl.ports.store_kinds import kind_elsewhere
from tieredctl.storage.registry import open_store

STDIN = "-"
_CHUNK_BYTES = 1 << 20


def local_path(text: str, store_options: Mapping[str, str], held: ExitStack) -> Path:
    """Where the bytes are on this machine: the path itself, or a copy in a temporary file, until `held` is closed.

    Raises TieredctlError for what is too large for any file of a broker, `usage` for a terminal, and as the store does.
    """
    if text == STDIN:
        if sys.stdin.isatty():
            hint = "Pipe a file into the command, as in: gunzip -c FILE.gz | tieredctl store inspect - --kind log"
            raise TieredctlError(ErrorCode.USAGE, "Nothing is piped in: stdin is a terminal.", hint=hint)
        return _copied(iter(lambda: sys.stdin.buffer.read(_CHUNK_BYTES), b""), "stdin", held)
    if kind_elsewhere(text) is not None:
        url, _, key = text.rpartition("/")
        if not key:
            raise TieredctlError(
                ErrorCode.USAGE, f"{text} does not name an object.", hint="Give the key after the URL."
            )
        return _copied(open_store(url, store_options).stream(key), text, held)
    return Path(text.removeprefix("file:") or text)


def _copied(chunks: Iterable[bytes], name: str, held: ExitStack) -> Path:
    file = held.enter_context(NamedTemporaryFile(prefix="tieredctl-"))  # noqa: SIM115 - `held` closes it
    for chunk in chunks:
        file.write(chunk)
        if file.tell() > LARGEST_BATCH_FILE:
            message = f"{name} has more than {size_text(LARGEST_BATCH_FILE)}, far more than a file of a broker"
            raise TieredctlError(ErrorCode.UNREADABLE, message)
    file.flush()
    return Path(file.name)
