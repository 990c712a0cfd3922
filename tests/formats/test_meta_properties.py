"""`meta.properties` and the Java properties it is written in (MetaProperties, java.util.Properties)."""

from __future__ import annotations

import pytest

from tieredctl.errors import DecodeError
from tieredctl.formats.java_properties import encode_properties, read_properties
from tieredctl.formats.meta_properties import MetaProperties, encode_meta_properties, read_meta_properties

CLUSTER_ID, DIRECTORY_ID = "preTTRqnQOeby9xOnCMfyA", "SXZo9AiJxEa1pZxDz4Yy3w"


def test_version_1_as_a_kraft_node_writes_it() -> None:
    data = (
        "#\n#Sat Nov 21 09:13:48 UTC 2026\n"
        f"node.id=1\ndirectory.id={DIRECTORY_ID}\nversion=1\ncluster.id={CLUSTER_ID}\n"
    ).encode()

    assert read_meta_properties(data) == MetaProperties(1, CLUSTER_ID, 1, DIRECTORY_ID)


def test_version_0_names_a_broker_and_may_lack_everything() -> None:
    assert read_meta_properties(b"version=0\nbroker.id=3\n") == MetaProperties(0, None, 3, None)
    assert read_meta_properties(b"") == MetaProperties(0, None, None, None)


@pytest.mark.parametrize("meta", [MetaProperties(1, CLUSTER_ID, 1, DIRECTORY_ID), MetaProperties(0, None, 3, None)])
def test_what_is_written_is_read(meta: MetaProperties) -> None:
    assert read_meta_properties(encode_meta_properties(meta)) == meta


@pytest.mark.parametrize(
    "data",
    [
        b"version=2\n",
        b"version=one\n",
        b"version=1\nnode.id=1\n",
        b"version=1\ncluster.id=x\n",
        b"version=1\ncluster.id=x\nnode.id=-1\n",
        b"version=1\ncluster.id=x\nnode.id=1\ndirectory.id=short\n",
    ],
)
def test_what_a_broker_would_not_start_with_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_meta_properties(data)


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("key=value", {"key": "value"}),
        ("key:value", {"key": "value"}),
        ("key value", {"key": "value"}),
        ("  key \t = \f value ", {"key": "value "}),
        ("key", {"key": ""}),
        ("key==", {"key": "="}),
        ("# comment\n! comment\n\n   \nkey=value", {"key": "value"}),
        ("key=one, \\\n    two", {"key": "one, two"}),
        ("key=one\\\\\nother=2", {"key": "one\\", "other": "2"}),
        ("host=a\\:1\\=2", {"host": "a:1=2"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("tab=\\t\\u00e4\\ud83d\\ude00\\z", {"tab": "\t\u00e4\U0001f600z"}),
        ("twice=1\rtwice=2\r\n", {"twice": "2"}),
        ("end=here\\", {"end": "here"}),
        ("half=\\ud83d", {"half": "\ufffd"}),
        ("\\# not=a comment", {"#": "not=a comment"}),
    ],
)
def test_java_properties(text: str, properties: dict[str, str]) -> None:
    assert read_properties(text.encode("latin-1")) == properties


def test_bytes_above_127_are_latin_1() -> None:
    assert read_properties(b"key=\xe4") == {"key": "\u00e4"}


def test_java_properties_are_written_with_escapes() -> None:
    properties = {"a b": " =x", "ä": "\n\\\U0001f600"}

    data = encode_properties(properties)

    assert data == b"a\\ b=\\ \\=x\n\\u00e4=\\n\\\\\\ud83d\\ude00\n"
    assert read_properties(data) == properties


def test_an_escape_without_four_digits_is_refused() -> None:
    with pytest.raises(DecodeError, match="hexadecimal"):
        read_properties(b"key=\\u12")
