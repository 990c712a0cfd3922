"""What earlier runs of `orphans scan` and `verify` left: JSON documents, marks, and metrics for Prometheus.

They are claims of a moment that is past: they are shown with their age, and nothing is decided by them.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError

_LARGEST_BYTES = 1 << 28
_SUMMARY = "summary.json"
_SAMPLE = re.compile(r'tieredctl_([a-z_]+)\{command="([a-z ]+)"(?:,[a-z]+="([^"]*)"(?:,[a-z]+="[^"]*")?)?\} (\S+)')
_SCAN, _VERIFY = "orphans scan", "verify"
_KINDS = {"RemoteObjects": _SCAN, "OrphanMark": _SCAN, "Verification": _VERIFY}


@dataclass(frozen=True, slots=True)
class LastScan:
    """The totals of a scan; None for what it did not say."""

    at_ms: int
    objects: int | None
    orphans: int
    orphan_bytes: int | None
    is_complete: bool
    path: str


@dataclass(frozen=True, slots=True)
class LastVerification:
    """The totals of a verification; None for what it did not say."""

    at_ms: int
    level: str | None
    read: int
    """Segments that it looked at; `skipped` are those that its share left out."""
    skipped: int
    not_looked_at: int
    """Segments that the store did not answer for."""
    findings: int
    is_complete: bool
    path: str

    @property
    def coverage(self) -> float | None:
        """The share of segments that it looked at; None where there was none."""
        everything = self.read + self.skipped + self.not_looked_at
        return self.read / everything if everything else None


@dataclass(frozen=True, slots=True)
class LastResults:
    """The latest of each; None where none was given."""

    scan: LastScan | None = None
    verification: LastVerification | None = None


@dataclass(frozen=True, slots=True)
class _Claim:
    command: str
    at_ms: int
    path: str
    fields: Mapping[str, Any]
    store: str | None = None
    cluster_id: str | None = None


def read_results(paths: Iterable[Path], store: str | None, cluster_id: str | None) -> LastResults:
    """The latest results in these files, or folders of marks. Raises TieredctlError for one that is not a result, and
    for one of another store or cluster than these, None being unknown."""
    claims = [claim for path in paths for claim in _claims(path)]
    for claim in claims:
        _demand_same(claim, "store", claim.store, store)
        _demand_same(claim, "cluster", claim.cluster_id, cluster_id)
    latest = {claim.command: claim for claim in sorted(claims, key=lambda claim: claim.at_ms)}
    try:
        scan, verification = latest.get(_SCAN), latest.get(_VERIFY)
        return LastResults(
            None if scan is None else _scan(scan), None if verification is None else _verification(verification)
        )
    except (KeyError, TypeError, ValueError):
        raise _bad(claims[0].path if len(claims) == 1 else "A file") from None


def _demand_same(claim: _Claim, what: str, its: str | None, ours: str | None) -> None:
    if its is not None and ours is not None and its.rstrip("/") != ours.rstrip("/"):
        message = f"{claim.path} is the result of another {what}: {its}, not {ours}."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give the results of this one.")


def _claims(path: Path) -> list[_Claim]:
    file = path / _SUMMARY if path.is_dir() else path
    data, at_ms = _read(file)
    text = data.decode("utf-8", "replace")
    if not text.lstrip().startswith("{"):
        return _of_metrics(str(path), text)
    try:
        found = json.loads(text)
        command = _KINDS[found["kind"]]
        source, fields = found["source"], found["summary"]
        if fields.get("success") is False:
            raise TieredctlError(ErrorCode.USAGE, f"{path} is of a scan that did not finish.", hint="Run it again.")
        at_ms = int(fields.get("markedMs", at_ms))
        return [_Claim(command, at_ms, str(path), fields, source.get("store"), source.get("clusterId"))]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _bad(str(path)) from None


def _read(file: Path) -> tuple[bytes, int]:
    """The file, and when it was written, in ms."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_BYTES:
            raise _bad(str(file))
        return opened.read(_LARGEST_BYTES), status.st_mtime_ns // 1_000_000


def _of_metrics(path: str, text: str) -> list[_Claim]:
    fields: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        match = _SAMPLE.fullmatch(line)
        if match is None:
            continue
        name, command, label, value = match.groups()
        try:
            number = float(value)
        except ValueError:
            raise _bad(path) from None
        of_command = fields.setdefault(command, {"findings": 0})
        if name == "findings":
            of_command[name] += number
        else:
            of_command[name if label is None else f"{name}={label}"] = number
    claims = []
    for command, one in fields.items():
        if command in (_SCAN, _VERIFY) and 0 < one.get("last_run_timestamp_seconds", 0) < 1e11:
            claims.append(_Claim(command, int(one["last_run_timestamp_seconds"]) * 1000, path, _as_summary(one)))
    if not claims:
        raise _bad(path)
    return claims


def _as_summary(metrics: Mapping[str, float]) -> dict[str, Any]:
    """A run's numbers by the names of its summary."""
    said: dict[str, Any] = {name: int(number) for name, number in metrics.items() if abs(number) < 1e18}
    orphan = {"objects": said.get("objects_by_status=orphan"), "bytes": said.get("bytes_by_status=orphan")}
    return said | {
        "status": {"orphan": orphan},
        "notLookedAt": said.get("not_looked_at", 0),
        "complete": said.get("complete") == 1,
    }


def _scan(claim: _Claim) -> LastScan:
    fields = claim.fields
    orphans = fields["status"]["orphan"] if "status" in fields else {"objects": fields["candidates"], "bytes": None}
    return LastScan(
        claim.at_ms,
        _number_or_none(fields.get("objects")),
        _number(orphans["objects"]),
        _number_or_none(orphans["bytes"]),
        fields.get("complete", True) is True,
        claim.path,
    )


def _verification(claim: _Claim) -> LastVerification:
    fields = claim.fields
    level = fields.get("level")
    return LastVerification(
        claim.at_ms,
        level if isinstance(level, str) and level in ("listing", "headers", "full") else None,
        _number(fields["segments"]),
        _number(fields["skipped"]),
        _number(fields.get("notLookedAt", 0)),
        _number(fields["findings"]),
        fields["complete"] is True,
        claim.path,
    )


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError
    return value


def _number_or_none(value: object) -> int | None:
    return None if value is None else _number(value)


def _bad(path: str) -> TieredctlError:
    hint = "Give what `orphans scan -o json`, `verify -o json` or --metrics-file wrote, or a mark's folder."
    return TieredctlError(ErrorCode.USAGE, f"{path} is not the result of a scan or a verification.", hint=hint)
