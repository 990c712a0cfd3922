"""`store check`: reads local stores, then the metadata that they are compared with."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document
from tieredctl.ops.file_reading import LARGEST_BATCH_FILE
from tieredctl.ops.store_check.check import StoreCheck, check_stores
from tieredctl.ops.store_check.index_cache_check import RemoteIndexes
from tieredctl.ops.store_check.local_stores import read_local_stores
from tieredctl.ports.store_kinds import kind_elsewhere
from tieredctl.storage.registry import open_store
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.timelines import demand_own


class CheckedStores(NamedTuple):
    """What a check of local stores found, and where."""

    result: StoreCheck
    source: Document
    metadata_findings: Sequence[Finding]
    """What was wrong with the metadata."""


def check_local_stores(
    directories: Sequence[Path], metadata: MetadataPlace, store: StorePlace | None = None
) -> CheckedStores:
    """Whether the local stores in brokers' log directories agree with each other and with the metadata, which is read
    from the same directories unless another place is given.

    Local stores are read first: what a running broker wrote there is already in the metadata. With `store`, cached
    indexes are compared with the remote ones. Raises TieredctlError as the places and `demand_own` do.
    """
    stores = read_local_stores(directories)
    remote, described = None, {}
    if store is not None:
        opened, layout = store.open()
        remote = RemoteIndexes(opened, layout)
        described = {"store": opened.url, "layout": layout.name}
    place = metadata if metadata.is_given else MetadataPlace(tuple(directories))
    with place.open() as stream:
        demand_own(directories, stream.source.cluster_id)
        result = check_stores(stores, stream, remote)
        source = stream.source.describe() | {"stores": [str(path) for path in directories]} | described
        return CheckedStores(result, source, stream.findings)


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
