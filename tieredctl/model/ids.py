"""Ids as Kafka writes them."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from binascii import b2a_base64
from dataclasses import dataclass

UUID_BYTES = 16
UUID_CHARACTERS = 22
ZERO_UUID = "A" * UUID_CHARACTERS
RESERVED_UUIDS = (ZERO_UUID, "A" * (UUID_CHARACTERS - 1) + "Q")
"""Kafka's Uuid.RESERVED: no id at all, and that of the topic `__cluster_metadata`. No other topic has either."""
UUID_PATTERN = "[A-Za-z0-9_-]{21}[AQgw]"
"""An id in regular expressions. 22 characters of base64 hold 132 bits, an id 128: the last character is one of four."""
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def uuid_text(data: bytes) -> str:
    """16 bytes as Kafka prints a Uuid: 22 characters of URL-safe base64 without padding."""
    return b2a_base64(data, newline=False)[:UUID_CHARACTERS].translate(_URL_SAFE).decode("ascii")


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of a Uuid's 22-character text. Raises ValueError for any other text."""
    if len(text) != UUID_CHARACTERS:
        raise ValueError(f"not a Kafka Uuid: {text!r}")
    data = urlsafe_b64decode(text.encode("ascii") + b"==")
    if len(data) != UUID_BYTES or uuid_text(data) != text:
        raise ValueError(f"not a Kafka Uuid: {text!r}")
    return data


def is_uuid(text: str) -> bool:
    """Whether a text is a Uuid's."""
    try:
        uuid_bytes(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True, order=True)
class TopicIdPartition:
    """A partition of one incarnation of a topic: a recreated topic has another id."""

    topic_id: str
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic_id}:{self.topic}-{self.partition}"

    @property
    def names(self) -> tuple[str, str, int]:
        """Topic, topic id and partition: the order in which results have them."""
        return self.topic, self.topic_id, self.partition
