"""How far a broker of Kafka 3.1 to 3.5 had read each metadata partition: `_rlmm_committed_offsets`.

Sources: CommittedOffsetsFile (a checkpoint file); KIP-405, "Committed offsets file format" (the bare lines).
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.checkpoints import column_text, encode_checkpoint, read_checkpoint, read_columns
from tieredctl.formats.schema import Field, Primitive, Struct
from tieredctl.formats.text_lines import lines_of
from tieredctl.formats.varints import Buffer

COMMITTED_OFFSET = Struct("CommittedOffset", (Field("partition", Primitive.INT32), Field("offset", Primitive.INT64)))


class CommittedOffsetsForm(Enum):
    """How the file is written."""

    KAFKA = "kafka"
    """A checkpoint file: version and count before the entries."""
    KIP_405 = "kip405"
    """The entries alone."""


class CommittedOffsets(NamedTuple):
    """The offset last read (not the next one) of each metadata partition, in the file's order."""

    form: CommittedOffsetsForm
    offsets: dict[int, int]


def read_committed_offsets(data: Buffer) -> CommittedOffsets:
    """Tells the forms apart by the first line: Kafka's has one number there. Raises DecodeError, also where a
    partition comes twice."""
    lines = lines_of(data)
    form = CommittedOffsetsForm.KAFKA
    if lines and len(lines[0].text.split()) > 1:
        form = CommittedOffsetsForm.KIP_405
        entries = [read_columns(COMMITTED_OFFSET, line) for line in lines]
    else:
        entries = read_checkpoint(COMMITTED_OFFSET, data)
    offsets = {entry["partition"]: entry["offset"] for entry in entries}
    if len(offsets) != len(entries):
        raise DecodeError("a metadata partition has two committed offsets", 0)
    return CommittedOffsets(form, offsets)


def encode_committed_offsets(committed: CommittedOffsets) -> bytes:
    """The file's bytes in the form that it names."""
    entries = [{"partition": partition, "offset": offset} for partition, offset in committed.offsets.items()]
    if committed.form is CommittedOffsetsForm.KAFKA:
        return encode_checkpoint(COMMITTED_OFFSET, entries)
    return "".join(column_text(COMMITTED_OFFSET, entry) + "\n" for entry in entries).encode("utf-8")
