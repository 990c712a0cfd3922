"""What earlier runs of `orphans scan` and `verify` left: JSON documents, marks, and metrics for Prometheus.

They are claims of a moment that is past: they are shown with their age, and nothing is decided by them.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.clock import MOST_AHEAD_MS
from tieredctl.model.finding_codes import AnyFindingCode, FindingCode
from tieredctl.model.findings import FINDING_KINDS, Severity
from tieredctl.model.tolerance import Tolerance
from tieredctl.ops.remote.inventory import iso_8601

_HEAD, _TAIL = 1 << 20, 64
"""What is read of a document that is longer, in bytes; metrics are shorter."""
_ITEMS, _END = re.compile(rb'"items"\s*:\s*\['), re.compile(rb"\]\s*\}\s*\Z")
"""Where a document's items begin, and how it ends with them."""
_SUMMARY = "summary.json"
_SUFFIXES = (".json", ".prom")
"""The suffixes of results that lie together in a folder."""
SCAN, VERIFY = "orphans scan", "verify"
_OF_A_FAILURE = {"findings", "kinds", "exit_code", "last_run_timestamp_seconds"}
"""What metrics have where a run failed: no figure of what it looked at."""
_SEVERITIES = {severity.label: severity for severity in Severity}
_Kind = tuple[AnyFindingCode | None, Severity]
"""A finding's severity and code; no code where it is one of another release."""
_Count = tuple[str | None, str, int]
"""How many findings have a code and a severity, as a file says it."""
_PREFIX = "tieredctl_"
_KINDS = {"RemoteObjects": SCAN, "OrphanMark": SCAN, "Verification": VERIFY}
_PART = "what was selected"
"""Metrics do not say what that was."""
_GREATEST = (1 << 63) - 1
"""No store has more objects or bytes."""


@dataclass(frozen=True, slots=True)
class LastScan:
    """The totals of a scan; None for what it did not say."""

    at_ms: int
    objects: int | None
    orphans: int
    orphan_bytes: int | None
    is_complete: bool
    path: str
    unknown: int | None = None
    """Objects that could not be judged; not among the orphans."""
    selection: str | None = None
    """What alone it looked at: `topic orders`; None where that was all."""

    def exit_code(self, tolerance: Tolerance) -> ExitCode:
        """What it means to the shell."""
        orphans: dict[_Kind, int] = {(FindingCode.OBJECT_UNREFERENCED, Severity.WARNING): self.orphans}
        return _exit_code(orphans, tolerance, is_complete=self.is_complete)


@dataclass(frozen=True, slots=True)
class LastVerification:
    """The totals of a verification; None for what it did not say."""

    at_ms: int
    level: str | None
    read: int
    """Segments that it looked at; `skipped` are those that are not whole or gone, or that its share left out."""
    skipped: int
    not_looked_at: int
    """Segments that the store did not answer for."""
    findings: int
    is_complete: bool
    path: str
    kinds: Mapping[_Kind, int] = field(default_factory=dict)
    """How many of the findings are of each kind."""
    selection: str | None = None
    """As of a scan."""

    @property
    def severities(self) -> dict[Severity, int]:
        """How many of the findings have each severity, also of those that none has."""
        counts = self.kinds.items()
        return {severity: sum(count for (_, one), count in counts if one is severity) for severity in Severity}

    def exit_code(self, tolerance: Tolerance) -> ExitCode:
        """What it means to the shell; of its findings only codes are known, so none is ignored for its subject."""
        return _exit_code(self.kinds, tolerance, is_complete=self.is_complete)

    @property
    def coverage(self) -> float | None:
        """The share of segments that it looked at; None where there was none, and where it is not known how many others
        there are."""
        everything = self.read + self.skipped + self.not_looked_at
        return self.read / everything if everything and self.selection is None else None


def _exit_code(kinds: Mapping[_Kind, int], tolerance: Tolerance, *, is_complete: bool) -> ExitCode:
    """What findings mean to the shell, whatever they are about."""
    codes = [ExitCode.CLEAN if is_complete else ExitCode.INCOMPLETE]
    for (code, severity), count in kinds.items():
        kind = None if code is None else FINDING_KINDS[code]
        if not count or (kind is not None and tolerance.ignores(kind, severity, "")):
            continue
        is_altered = kind is not None and kind.altered and severity is Severity.ERROR
        codes.append(
            tolerance.exit_code(
                severity,
                is_corruption=severity is Severity.CRITICAL or is_altered,
                makes_incomplete=kind is not None and kind.makes_incomplete(severity),
            )
        )
    return worst(*codes)


_Result = TypeVar("_Result", LastScan, LastVerification)


@dataclass(frozen=True, slots=True)
class LastResults:
    """The latest of each that looked at everything, else the latest; None where none was given."""

    scan: LastScan | None = None
    verification: LastVerification | None = None
    verifications: Sequence[LastVerification] = ()
    """All that were given, the latest last."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """The file of each command's latest run that failed, which says nothing of the cluster."""

    def exit_code(self, tolerance: Tolerance) -> ExitCode:
        """What the last scan and the last verification mean to the shell, until there are later ones."""
        return worst(*(one.exit_code(tolerance) for one in (self.scan, self.verification) if one is not None))


@dataclass(frozen=True, slots=True)
class _Claim:
    command: str
    at_ms: int
    path: str
    fields: Mapping[str, Any]
    store: str | None = None
    cluster_id: str | None = None
    is_of_failure: bool = False


def read_results(paths: Iterable[Path], store: str | None, cluster_id: str | None) -> LastResults:
    """The latest results in these files, in folders of them, and in folders of marks. Raises TieredctlError for what is
    not a result, for one of another store or cluster than these (None being unknown) or than the other results, and for
    one that is dated in the future."""
    claims = [claim for path in paths for file in result_files(path) for claim in _claims(file)]
    for claim in claims:
        store = _demand_same(claim, "store", claim.store, store)
        cluster_id = _demand_same(claim, "cluster", claim.cluster_id, cluster_id)
        _demand_past(claim)
    claims.sort(key=lambda claim: claim.at_ms)
    failed = {claim.command: claim.path for claim in claims if claim.is_of_failure}
    results = [_result(claim) for claim in claims if not claim.is_of_failure]
    scans = [one for one in results if isinstance(one, LastScan)]
    verifications = [one for one in results if isinstance(one, LastVerification)]
    return LastResults(_latest(scans), _latest(verifications), verifications, failed)


def _latest(results: Sequence[_Result]) -> _Result | None:
    """The latest of those in the order of their times; one of a part hides none of the whole."""
    whole = [one for one in results if one.selection is None]
    return next(reversed(whole or results), None)


def _demand_same(claim: _Claim, what: str, its: str | None, ours: str | None) -> str | None:
    """The one that is known now."""
    if its is not None and ours is not None and its.rstrip("/") != ours.rstrip("/"):
        message = f"{claim.path} is the result of another {what}: {its}, not {ours}."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give the results of this one.")
    return its if ours is None else ours


def _demand_past(claim: _Claim) -> None:
    """Refuses a result that is dated in the future: it would be the latest for ever, and never old."""
    if claim.at_ms > time.time_ns() // 1_000_000 + MOST_AHEAD_MS:
        message = f"{claim.path} is dated {iso_8601(claim.at_ms) or 'after the year 9999'}, which is in the future."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Is a clock wrong? Run it again.")


def _result(claim: _Claim) -> LastScan | LastVerification:
    try:
        return _scan(claim) if claim.command == SCAN else _verification(claim)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise _bad(claim.path) from None


def _claims(path: Path) -> list[_Claim]:
    with _opened(path) as (file, at_ms):
        try:
            head = file.read(_HEAD)
            if head.lstrip().startswith(b"{"):
                return [_of_document(path, _document(head, file), at_ms)]
            return _of_metrics(str(path), head)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            raise _bad(str(path)) from None


def _document(head: bytes, file: BinaryIO) -> Any:
    """What a command wrote, and of a long document what comes before its items, which may be millions: its summary has
    all that counts. Raises ValueError for what is not one, or ends before its end."""
    if len(head) == _HEAD:
        items = _ITEMS.search(head)
        file.seek(-_TAIL, os.SEEK_END)
        if items is None or not _END.search(file.read()):
            raise ValueError("too long, or cut off")
        head = head[: items.start()] + b'"items":null}'
    return json.loads(head)


def _of_document(path: Path, document: Mapping[str, Any], at_ms: int) -> _Claim:
    command = _KINDS[document["kind"]]
    source, fields = document["source"], document["summary"]
    if fields.get("success") is False:
        raise TieredctlError(ErrorCode.USAGE, f"{path} is of a scan that did not finish.", hint="Run it again.")
    if command == VERIFY:
        fields = fields | {"kinds": list(_kinds_in(document))}
    store, cluster_id = (_text_or_none(source.get(name)) for name in ("store", "clusterId"))
    return _Claim(command, _time_of(fields, source, at_ms), str(path), fields, store, cluster_id)


def _kinds_in(document: Mapping[str, Any]) -> Iterator[_Count]:
    codes = document["summary"].get("codes")
    if codes is None:  # an earlier release wrote it
        return ((one.get("code"), one["severity"], 1) for one in document.get("items") or ())
    return ((code, one, count) for code, severities in codes.items() for one, count in severities.items())


def _time_of(fields: Mapping[str, Any], source: Mapping[str, Any], written_ms: int) -> int:
    """When a run ended. A file that was copied is younger than that; one that says nothing is as old as it is."""
    if "markedMs" in fields:
        return _number(fields["markedMs"])
    at = _text_or_none(source.get("at"))
    return _number(written_ms if at is None else round(datetime.fromisoformat(at).timestamp() * 1000))


def result_files(path: Path) -> list[Path]:
    """The files that say it: itself, the summary in a mark's folder, or all documents and metrics in another folder.
    Raises OSError where there is no such folder, and TieredctlError where it has none of them."""
    if not path.is_dir():
        return [path]
    if (path / _SUMMARY).exists():
        return [path / _SUMMARY]
    files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and not file.name.startswith("."))
    if not files:
        raise _bad(str(path))
    return files


def demand_result(file: Path) -> None:
    """Raises TieredctlError for a file that is not a result; OSError where it cannot be read."""
    for claim in _claims(file):
        if not claim.is_of_failure:
            _result(claim)


def is_awaited(path: Path) -> bool:
    """Whether there is no result yet: no file, no folder, or an empty one. What cannot be looked at may be there."""
    try:
        return stat.S_ISDIR(path.stat().st_mode) and not any(path.iterdir())
    except FileNotFoundError:
        return True
    except OSError:
        return False


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The file, and when it was written, in ms."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise _bad(str(path))
    with open(descriptor, "rb") as file:
        yield file, status.st_mtime_ns // 1_000_000


def _of_metrics(path: str, text: bytes) -> list[_Claim]:
    from prometheus_client.parser import text_string_to_metric_families

    if len(text) == _HEAD:
        raise ValueError("too long")
    runs: dict[str, dict[str, Any]] = {}
    families = text_string_to_metric_families(text.decode())
    for sample in (one for family in families if family.name.startswith(_PREFIX) for one in family.samples):
        labels = dict(sample.labels)
        run = runs.setdefault(labels.pop("command", ""), {"findings": 0, "kinds": []})
        name = sample.name.removeprefix(_PREFIX)
        if name == "findings":
            run[name] += sample.value
            run["kinds"].append((labels.get("code"), labels["severity"], int(sample.value)))
        else:
            run["=".join([name, *labels.values()])] = sample.value
    claims = []
    for command, run in runs.items():
        if command in (SCAN, VERIFY) and 0 < run.get("last_run_timestamp_seconds", 0) < 1e11:
            at_ms = int(run["last_run_timestamp_seconds"]) * 1000
            is_of_failure = run.keys() <= _OF_A_FAILURE and run.get("exit_code", 0) > 0
            claims.append(_Claim(command, at_ms, path, _as_summary(run), is_of_failure=is_of_failure))
    if not claims:
        raise _bad(path)
    return claims


def _as_summary(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run's numbers by the names of its summary."""
    numbers = {name: int(number) for name, number in run.items() if name != "kinds" and abs(number) < 1e18}
    orphan = {"objects": numbers.get("objects_by_status=orphan"), "bytes": numbers.get("bytes_by_status=orphan")}
    return numbers | {
        "kinds": run["kinds"],
        "status": {"orphan": orphan, "unknown": {"objects": numbers.get("objects_by_status=unknown")}},
        "notLookedAt": numbers.get("not_looked_at", 0),
        "outsideSubset": numbers.get("outside_subset", 0),
        "complete": numbers.get("complete") == 1,
        "selectedOnly": numbers.get("selected_only", 0) != 0,
    }


def _scan(claim: _Claim) -> LastScan:
    fields = claim.fields
    marked = {"orphan": {"objects": fields["candidates"], "bytes": None}} if "candidates" in fields else {}
    status = marked or fields["status"]
    orphans = status["orphan"]
    return LastScan(
        claim.at_ms,
        _number_or_none(fields.get("objects")),
        _number(orphans["objects"]),
        _number_or_none(orphans["bytes"]),
        fields.get("complete", True) is True,
        claim.path,
        _number_or_none(status.get("unknown", {}).get("objects")),
        _selection(fields),
    )


def _verification(claim: _Claim) -> LastVerification:
    fields = claim.fields
    level, findings, kinds = fields.get("level"), _number(fields["findings"]), _counted(fields["kinds"])
    return LastVerification(
        claim.at_ms,
        level if isinstance(level, str) and level in ("listing", "headers", "full") else None,
        _number(fields["segments"]),
        _number(fields["skipped"]) + _number(fields.get("outsideSubset", 0)),
        _number(fields.get("notLookedAt", 0)),
        findings,
        # Of which kinds its other findings are is unknown.
        fields["complete"] is True and kinds.total() >= findings,
        claim.path,
        kinds,
        _selection(fields),
    )


def _selection(fields: Mapping[str, Any]) -> str | None:
    named = _text_or_none(fields.get("selection"))
    return named or (_PART if fields.get("selectedOnly") else None)


def _counted(counts: Iterable[_Count]) -> Counter[_Kind]:
    totals: Counter[_Kind] = Counter()
    for code, severity, count in counts:
        kind = FINDING_KINDS.get(code)  # type: ignore[call-overload]
        totals[kind and kind.code, _SEVERITIES[severity]] += _number(count)
    return totals


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _GREATEST:
        raise ValueError
    return value


def _text_or_none(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError
    return value


def _number_or_none(value: object) -> int | None:
    return None if value is None else _number(value)


def _bad(path: str) -> TieredctlError:
    hint = "Give what `orphans scan -o json`, `verify -o json` or --metrics-file wrote, a mark, or a folder of these."
    return TieredctlError(ErrorCode.USAGE, f"{path} is not the result of a scan or a verification.", hint=hint)
