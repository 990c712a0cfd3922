"""A file's lines are the same read as columns, in pieces of whatever size."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tieredctl.formats.line_columns import line_columns


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=20), st.integers(1, 50))
def test_lines_as_columns(lines: list[bytes], piece_bytes: int) -> None:
    with TemporaryDirectory() as folder, patch("tieredctl.formats.line_columns._PIECE_BYTES", piece_bytes):
        file = Path(folder) / "lines"
        for content in (b"\n".join(lines), b"".join(line + b"\n" for line in lines)):
            file.write_bytes(content)
            with file.open("rb", buffering=0) as opened:
                read = [line for keys in line_columns(opened) for line in keys.to_pylist()]

            assert read == content.removesuffix(b"\n").split(b"\n") if content else read == []
