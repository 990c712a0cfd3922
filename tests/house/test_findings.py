"""Findings are distinguished by what they are about, as values; their evidence is shown, and decides nothing."""

from __future__ import annotations

import ast
import json
from pathlib import Path

from tests.metadata_logs import started
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, exit_code_of
from tieredctl.ops.remote.part_finding import part_finding
from tieredctl.ports.layout import Part
from tieredctl.ports.metadata_source import truncated
from tieredctl.rlmm.replayed_metadata import refused_event
from tieredctl.rlmm.states import Refusal

ROOT = Path(__file__).parents[2]
SHOWN_OR_WRITTEN = {
    "tieredctl/ops/guards/second_look.py",
    "tieredctl/ops/verification/accepted_losses.py",
    "tieredctl/cli/commands/orphans_show.py",
    "tieredctl/cli/findings/finding_report.py",
    "tieredctl/model/findings.py",
    "tieredctl/ops/doctor/node_rules.py",
}
"""Where it becomes a document, or gets another field; or where that of a plan, which has the same name, is shown."""


def test_nothing_is_decided_by_the_evidence_of_a_finding() -> None:
    sources = [path for folder in ("tieredctl", "spark", "plugins") for path in sorted((ROOT / folder).rglob("*.py"))]

    reading = {str(path.relative_to(ROOT)) for path in sources if _reads_evidence(path.read_text("utf-8"))}

    assert reading == SHOWN_OR_WRITTEN


def _reads_evidence(source: str) -> bool:
    if ".evidence" not in source:
        return False
    tree = ast.parse(source)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return any(
        isinstance(node, ast.Attribute) and node.attr == "evidence" and id(node) not in called
        for node in ast.walk(tree)
    )


LOG, DAMAGED = {Part.LOG: "orders-0/0.log"}, FindingCode.INDEX_DAMAGED
WRITTEN = {
    "a segment's part": part_finding(DAMAGED, started(5, 0, 9), LOG, Part.LOG, "damaged", position=3, offsets=(0, 9)),
    "an event": refused_event(
        3,
        17,
        "s",
        (None, RemoteLogSegmentState.COPY_SEGMENT_FINISHED),
        Refusal.UNKNOWN_SEGMENT,
        "AAAAAAAAAAAAAAAAAAAAAA",
    ),
    "a metadata partition": truncated(3, 7),
    "anything else": Finding(DAMAGED, "a file", "damaged", {"file": "0.index", "part": "offset-index"}),
}


def test_a_finding_that_was_written_is_read_with_its_subject_and_exit_code() -> None:
    for name, finding in WRITTEN.items():
        read = Finding.read(json.loads(json.dumps(finding.document())))

        assert (read, read.about) == (finding, finding.about), name
        assert exit_code_of([read]) == exit_code_of([finding]), name
