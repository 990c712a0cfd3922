"""The plugin's Iceberg mode (`segment.format=iceberg`): not a log, but rows in Parquet files of a table named like the
topic, and next to the table's own metadata a Puffin file for each segment, with its indexes and the names of its data
files.

Where a table is, its catalog decides; what is in it is named as Iceberg names it. Sources: IcebergRemoteStorageManager,
Iceberg's OutputFileFactory, SnapshotProducer, TableMetadata.
"""

from __future__ import annotations

import re

from tieredctl.model.ids import UUID_PATTERN
from tieredctl.ports.layout import OtherForm

FORM = "iceberg"
_OBJECT = re.compile(
    rf"""(?P<table>.+)/(?:
      metadata/(?:
        (?P<segment_id>{UUID_PATTERN})\.puffin
        | [^/]+\.puffin
        | [^/]+\.metadata\.json | [^/]+\.gz\.metadata\.json
        | snap-[^/]+\.avro | [^/]+-m[0-9]+\.avro
        | version-hint\.text
      )
      | data/(?:[^/]+/)*[^/]+\.(?:parquet|orc|avro)
    )""",
    re.VERBOSE | re.DOTALL,
)


def iceberg_object(key: str) -> OtherForm | None:
    """What a key says, if it is of a table's object."""
    match = _OBJECT.fullmatch(key)
    return OtherForm(FORM, f"{match['table']}/", match["segment_id"]) if match else None
