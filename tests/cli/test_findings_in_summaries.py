"""`summary.findings`: how many, where the items themselves are findings; the findings, where the items are others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_lost_inputs import OF_FILES, OF_METADATA, OF_STORES, copied, run

OF_A_FINDING = {"code", "severity", "subject", "message", "evidence", "remedy"}
COUNTED = {"verify", "store check", "doctor", "doctor config", "wal verify"}
LISTED = {
    *("status", "topic list", "topic status", "explain", "remote read", "recover metadata", "wal inspect"),
    *(f"metadata {verb}" for verb in ("segments", "history", "lookup", "epochs", "stuck", "stats", "format", "export")),
}
WORDS = OF_METADATA | OF_STORES | {name: words for name, (_, words) in OF_FILES.items()}


def shown(command: str, places: Mapping[str, str]) -> tuple[Any, list[Any]]:
    """The findings in its summary, None where it has no such field, and its items."""
    words = [word for word in WORDS[command] if word not in ("-o", "jsonl")]
    outcome = run(command, (*words, "-o", "json"), places)
    if not outcome.out.startswith("{"):
        return None, []
    document = json.loads(outcome.out)
    return document.get("summary", {}).get("findings"), document.get("items", [])


def are_findings(items: list[Any]) -> Iterator[bool]:
    return (one.keys() >= OF_A_FINDING for one in items)


@pytest.fixture
def places(captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """A cluster that is sound."""
    (tmp_path / "config.yaml").write_text("prices:\n- {store: 'file:', perGiBMonth: 0.5, currency: USD}\n")
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(tmp_path / "config.yaml"))
    return copied(captures, tmp_path / "cluster")


def test_a_summary_counts_the_findings_that_are_items_and_lists_all_others(places: Mapping[str, str]) -> None:
    counted, listed = set(), set()
    for command in WORDS:
        findings, items = shown(command, places)

        if isinstance(findings, int):
            counted.add(command)
            assert findings == len(items), command
            assert all(are_findings(items)), command
        elif findings is not None:
            listed.add(command)
            assert all(are_findings(findings)), command
            assert not any(are_findings(items)), command

    assert (counted, listed) == (COUNTED, LISTED)


def test_where_much_is_found_it_is_counted_or_listed_as_where_nothing_is(places: Mapping[str, str]) -> None:
    shutil.rmtree(Path(places["data"]) / "__remote_log_metadata-2")

    for command in ("verify", "doctor", "store check"):
        findings, items = shown(command, places)
        assert findings == len(items) > 0, command
        assert all(are_findings(items)), command
    for command in ("metadata stuck", "metadata stats", "status"):
        findings, items = shown(command, places)
        assert len(findings) > 0, command
        assert all(are_findings(findings)), command
        assert not any(are_findings(items)), command


def test_a_document_says_what_makes_its_exit_code_grave(places: Mapping[str, str]) -> None:
    shutil.rmtree(Path(places["data"]) / "__remote_log_metadata-2")
    found: dict[str, list[Any]] = {}

    for command in ("store compare", "store copy", "orphans scan", "estimate cost"):
        words = [word for word in WORDS[command] if word not in ("-o", "jsonl")]
        outcome = run(command, (*words, "-o", "json"), places)
        found[command] = [one["code"] for one in outcome.document()["summary"].get("findings", [])]

    assert all("metadata-partition-missing" in codes for codes in found.values()), found
