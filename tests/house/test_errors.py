"""Errors of every kind."""

from __future__ import annotations

import pickle
import re

from tieredctl_hdfs.connection import HdfsFailure, _BrokenOff, _NotReached

from tests.house.test_packaging import ROOT
from tieredctl.errors import DecodeError, ErrorCode, TieredctlError, UnfoldsTooFar
from tieredctl.formats.metadata_export import AnotherFileError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ports.layout import DamagedRange
from tieredctl.records.lost_records import LostRecords
from tieredctl.storage.azure_connection import AzureFailure
from tieredctl.storage.gcs_connection import GcsFailure
from tieredctl.storage.s3_connection import S3Failure

CODE, SAID = ErrorCode.STORE_THROTTLED, "the store throttles requests"
ERRORS = [
    TieredctlError(CODE, SAID, hint="wait", retry_after_seconds=3.0),
    DecodeError(SAID, 7),
    UnfoldsTooFar(SAID, 7),
    AnotherFileError(SAID, 7),
    DamagedRange(SAID, (4_096, 8_192), (91, 138)),
    LostRecords(Finding(FindingCode.OBJECT_MISSING, "segment", SAID)),
    AzureFailure(CODE, SAID, reason="ServerBusy", status=503, retry_after_seconds=3.0),
    GcsFailure(CODE, SAID, status=429),
    S3Failure(CODE, SAID, reason="SlowDown"),
    HdfsFailure(CODE, SAID, reason="StandbyException"),
    _NotReached(CODE, SAID),
    _BrokenOff(CODE, SAID),
]
_CLASS = re.compile(r"^ *class (\w+)\((\w+)\):", flags=re.MULTILINE)


def kinds() -> set[str]:
    """The names of all classes of errors."""
    sources = [file for folder in ("tieredctl", "plugins", "spark") for file in (ROOT / folder).rglob("*.py")]
    bases = dict(pair for file in sources for pair in _CLASS.findall(file.read_text(encoding="utf-8")))
    known: set[str] = set()
    more = {"TieredctlError"}
    while more:
        known |= more
        more = {name for name, base in bases.items() if base in more}
    return known


def test_each_is_the_same_in_another_process() -> None:
    for error in ERRORS:
        copy = pickle.loads(pickle.dumps(error))

        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
        assert copy.exit_code is error.exit_code

    assert {type(one).__name__ for one in ERRORS} == kinds()
