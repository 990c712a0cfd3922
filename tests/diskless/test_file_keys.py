"""Keys of files found among many, and told from others, as one by one."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tieredctl_inkless.ops.diskless.file_keys import NO_FILE, FileKeys

from tieredctl.model.ids import uuid_bytes, uuid_text
from tieredctl.model.key_text import key_bytes

NAMES = st.one_of(
    st.binary(min_size=16, max_size=16).map(uuid_text),
    st.text("AQgwxyz_-/\n", min_size=20, max_size=23),
    st.text(max_size=3),
)
FOLDERS = st.sampled_from(["", "/", "a/", "a/b/", "a//", "ä/", "a\n/", "b/"])
KEYS = st.tuples(FOLDERS, NAMES).map("".join)
ODD_KEYS = st.one_of(KEYS, KEYS.map(lambda key: f"\udcff{key}"))


def ends_in_an_id(key: str) -> bool:
    try:
        uuid_bytes(key.rpartition("/")[2])
    except ValueError:
        return False
    return True


def folder_of(key: str) -> tuple[str, str]:
    """What is at the root is in no folder, not in the one without a name."""
    return key.rpartition("/")[:2]


@given(st.lists(KEYS, unique=True, max_size=5), st.lists(ODD_KEYS, max_size=5))
def test_many_keys_at_once_are_what_each_is_alone(files: list[str], strangers: list[str]) -> None:
    listed = [*strangers, *files[::2]]
    known, keys = FileKeys(pa.chunked_array([pa.array(files, pa.string())])), pa.array(map(key_bytes, listed), "binary")
    folders = {folder_of(file) for file in files}

    named, are_uploads = known.are_uploads(keys)

    assert known.numbers_of(keys).tolist() == [files.index(key) if key in files else NO_FILE for key in listed]
    assert named.tolist() == [ends_in_an_id(key) for key in listed]
    assert are_uploads.tolist() == [ends_in_an_id(key) and folder_of(key) in folders for key in listed]
