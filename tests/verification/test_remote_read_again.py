"""`remote read` of bytes that are altered on their way from the store once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.rigs.lies import half, one_bit_flipped, zeros
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES
from tieredctl.storage.file import FileStore

SEGMENT = "GO1yWZckTOapkLtIH_MiCg"


@pytest.mark.parametrize("change", [half, one_bit_flipped, zeros])
@pytest.mark.parametrize("how", [[], ["--dry-run"]])
def test_what_looks_altered_is_read_again_before_it_is_called_so(
    captures: Path,
    tmp_path: Path,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[bytes], bytes],
    how: list[str],
) -> None:
    cluster, file, times = captures / "kafka-4.3.1", tmp_path / "log", count(1)
    streamed = FileStore.stream

    def altered_once(
        store: FileStore, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES
    ) -> Iterator[bytes]:
        data = b"".join(streamed(store, key, start, chunk_size))
        yield change(data) if next(times) == 1 else data

    monkeypatch.setattr(FileStore, "stream", altered_once)
    at = ["--log-dir", cluster / "data", "--store", f"file:{cluster / 'remote/kafka-tiered-storage'}"]

    done = tieredctl("remote", "read", SEGMENT, "--to", file, *at, *how)

    assert (done.exit_code, next(times)) == (0, 3)
    (stored,) = cluster.glob(f"remote/*/*/*{SEGMENT}.log")
    assert how or file.read_bytes() == stored.read_bytes()
