"""The six formats: what they say, that other tools can read it back, and what reaches a terminal."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from weakref import ReferenceType, ref

import pytest
import yaml

from tests.cli.command_line import Tieredctl, environment
from tests.cli.terminal_screen import everything_shown
from tieredctl.cli.output import Item, Listing, OutputFormat, TableColumn, render
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode

ITEMS: list[Item] = [
    {"topic": "orders", "partition": 0, "size": 5, "empty": False, "epochs": [{"leaderEpoch": 0, "offset": 7}]},
    {"topic": 'a "quoted", one', "partition": 12, "size": None, "empty": True, "epochs": []},
    {"topic": "yes", "partition": 1, "size": 12345, "empty": True, "epochs": [{"leaderEpoch": 1, "offset": 9}]},
]
COLUMNS = (
    TableColumn("TOPIC", "topic"),
    TableColumn("PARTITION", "partition"),
    TableColumn("SIZE", "size"),
    TableColumn("EPOCHS", lambda item: len(item["epochs"]), wide=True),
)
HOSTILE = "\x1b[31mred\x07\x9b2J\u202eevil\udcff\nnext"


def listing(items: list[Item], **summary: Any) -> Listing:
    return Listing(
        "Things", {"kind": "test"}, items, COLUMNS, lambda: {"items": len(items), **summary}, tuple(ITEMS[0])
    )


def rendered(output: OutputFormat, items: list[Item] | None = None) -> str:
    out = io.StringIO()
    render(listing(ITEMS if items is None else items), output, out)
    return out.getvalue()


def test_json_and_yaml_are_one_document() -> None:
    expected = {
        "kind": "Things",
        "apiVersion": "tieredctl/v1",
        "source": {"kind": "test"},
        "summary": {"items": 3},
        "items": ITEMS,
    }
    assert json.loads(rendered(OutputFormat.JSON)) == expected
    assert list(json.loads(rendered(OutputFormat.JSON))) == list(expected)
    assert yaml.safe_load(rendered(OutputFormat.YAML)) == expected


@pytest.mark.parametrize("items", [[], ITEMS[:1], ITEMS, [{"key": HOSTILE, "none": [], "empty": {}}, {}]])
def test_json_and_yaml_are_written_as_their_libraries_would_the_whole(items: list[Item]) -> None:
    document: Item = {"kind": "Things", "apiVersion": "tieredctl/v1", "source": {"kind": "test"}}
    document = {**document, "summary": {"items": len(items)}, "items": items}

    assert rendered(OutputFormat.JSON, items) == json.dumps(document, indent=2) + "\n"
    assert rendered(OutputFormat.YAML, items) == yaml.safe_dump(document, sort_keys=False)


@pytest.mark.parametrize("output", [OutputFormat.JSON, OutputFormat.YAML, OutputFormat.JSONL, OutputFormat.CSV])
def test_no_format_for_programs_holds_items(output: OutputFormat) -> None:
    class Row(dict[str, Any]):
        """An item that tells when it goes."""

    given: list[ReferenceType[Row]] = []

    def rows() -> Iterator[Row]:
        for number in range(20):
            row = Row(topic="orders", number=number)
            given.append(ref(row))
            yield row
            del row
            assert sum(one() is not None for one in given) <= 2

    render(Listing("Things", {}, rows(), (), {}, ("topic", "number")), output, io.StringIO())


@pytest.mark.parametrize("output", [OutputFormat.JSON, OutputFormat.YAML])
def test_nothing_is_written_of_a_document_whose_items_fail(output: OutputFormat) -> None:
    def rows() -> Iterator[Item]:
        yield ITEMS[0]
        raise TieredctlError(ErrorCode.UNREADABLE, "The disk went away.")

    out = io.StringIO()
    with pytest.raises(TieredctlError):
        render(Listing("Things", {}, rows(), COLUMNS, {}, ()), output, out)

    assert out.getvalue() == ""


def test_codes_are_written_as_the_text_that_they_are() -> None:
    code = FindingCode.OBJECT_UNREFERENCED
    codes = Listing(
        "Things", {"code": code}, [{"code": code}], [TableColumn("CODE", "code")], {code: 1, "codes": [code]}, ("code",)
    )
    for output in OutputFormat:
        render(codes, output, out := io.StringIO())

        assert "object-unreferenced" in out.getvalue(), output
        assert "FindingCode" not in out.getvalue(), output
        if output in (OutputFormat.JSON, OutputFormat.YAML):
            document = yaml.safe_load(out.getvalue())
            assert document["summary"] == {"object-unreferenced": 1, "codes": ["object-unreferenced"]}
            assert document["items"] == [{"code": "object-unreferenced"}] == [document["source"]]


def test_jsonl_is_an_item_a_line() -> None:
    assert [json.loads(line) for line in rendered(OutputFormat.JSONL).splitlines()] == ITEMS


def test_csv_reads_back() -> None:
    rows = list(csv.DictReader(io.StringIO(rendered(OutputFormat.CSV))))
    assert [row["topic"] for row in rows] == [item["topic"] for item in ITEMS]
    assert [row["size"] for row in rows] == ["5", "", "12345"]
    assert [row["empty"] for row in rows] == ["false", "true", "true"]
    assert [json.loads(row["epochs"]) for row in rows] == [item["epochs"] for item in ITEMS]
    assert rendered(OutputFormat.CSV, []) == "topic,partition,size,empty,epochs\n"


def test_a_table_lines_up() -> None:
    assert rendered(OutputFormat.TABLE).splitlines() == [
        "TOPIC            PARTITION   SIZE",
        "orders                   0      5",
        'a "quoted", one         12      -',
        "yes                      1  12345",
    ]
    assert [line.split()[-1] for line in rendered(OutputFormat.WIDE).splitlines()] == ["EPOCHS", "1", "0", "1"]
    assert rendered(OutputFormat.TABLE, []) == ""


def test_items_are_written_as_they_come() -> None:
    class Enough(Exception):
        pass

    class Reader(io.StringIO):
        def write(self, text: str) -> int:
            if "5000" in text:
                raise Enough
            return 0

    for output in (OutputFormat.JSONL, OutputFormat.CSV, OutputFormat.TABLE):
        endless: Iterator[Item] = ({"topic": number} for number in count())
        with pytest.raises(Enough):
            render(Listing("Things", {}, endless, COLUMNS[:1], {}, ("topic",)), output, Reader())


def test_a_later_longer_name_pushes_its_row_only() -> None:
    items: list[Item] = [*[{"topic": "t"}] * 1000, {"topic": "longer"}]
    out = io.StringIO()
    render(Listing("Things", {}, items, COLUMNS[:2], {}, ("topic",)), OutputFormat.TABLE, out)
    assert out.getvalue().splitlines()[-2:] == ["t              -", "longer          -"]


def test_nothing_in_a_name_acts_upon_the_terminal() -> None:
    for output in OutputFormat:
        text = rendered(output, [{**ITEMS[0], "topic": HOSTILE}])
        assert text.replace("\n", "").isprintable(), output
        assert text.isascii(), output


def test_hostile_names_read_back_unchanged() -> None:
    items: list[Item] = [{**ITEMS[0], "topic": HOSTILE}]
    assert json.loads(rendered(OutputFormat.JSON, items))["items"] == items
    assert json.loads(rendered(OutputFormat.JSONL, items)) == items[0]
    whole: list[Item] = [{**ITEMS[0], "topic": HOSTILE.replace("\udcff", "")}]
    assert yaml.safe_load(rendered(OutputFormat.YAML, whole))["items"] == whole


def test_every_format_through_the_command_line(captures: Path, tieredctl: Tieredctl) -> None:
    for output in OutputFormat:
        words = ("--log-dir", captures / "kafka-4.3.1/data", "-o", output.value.upper())
        outcome = tieredctl("metadata", "segments", *words)
        assert (outcome.exit_code, outcome.err) == (0, ""), output
        assert "zYJ8cWbWS6Wrn_UH97CRKw" in outcome.out, output


def test_findings_are_reported_on_stderr_unless_quiet(captures: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    os.symlink(captures / "kafka-4.3.1/data/__remote_log_metadata-0", tmp_path / "__remote_log_metadata-0")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\n__remote_log_metadata 0 100\n")
    words = ("metadata", "segments", "--log-dir", tmp_path)
    said = tieredctl(*words)
    assert said.exit_code == 5
    assert said.err.startswith("error: metadata-truncated: __remote_log_metadata-0: ")
    quiet = tieredctl(*words, "--quiet")
    assert (quiet.exit_code, quiet.out, quiet.err) == (5, said.out, "")
    document = tieredctl(*words, "-o", "json")
    assert document.err == ""
    codes = [finding["code"] for finding in document.document()["summary"]["findings"]]
    assert codes[0] == "metadata-truncated"


def test_what_is_said_of_hostile_names_does_not_act_upon_the_terminal(tmp_path: Path, tieredctl: Tieredctl) -> None:
    for words in (("store", "inspect", f"{tmp_path}/\x1b[31m"), ("metadata", "segments", "--log-dir", "/\x1b[31m")):
        outcome = tieredctl(*words)
        assert outcome.exit_code == 2
        assert "\\x1b[31m" in outcome.err
        assert "\x1b" not in outcome.err


def on_a_terminal(captures: Path, *options: str, **variables: str) -> str:
    """What `verify` shows on a terminal of its own."""
    ours, theirs = pty.openpty()
    capture = captures / "kafka-4.3.1"
    store = f"file:{capture}/remote/kafka-tiered-storage"
    words = ["verify", "--store", store, "--log-dir", str(capture / "data"), "--level", "listing", "--progress", "bar"]
    command = [sys.executable, "-m", "tieredctl", *words, *options]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment(TERM="xterm-256color", **variables)):
        os.close(theirs)
        return everything_shown(ours)


def test_no_colour_where_none_is_wanted(captures: Path) -> None:
    assert "\x1b[3" not in on_a_terminal(captures, NO_COLOR="1")
    assert "\x1b[3" not in on_a_terminal(captures, "--no-color")
