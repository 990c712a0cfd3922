"""`metadata segments --timeline`: partitions drawn over their offsets, as wide as the terminal, hiding no trouble."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.metadata_logs import DELETING, PARTITION, copied, started, updated, write_events
from tieredctl.cli import terminal
from tieredctl.cli.timelines import MOST_DRAWN
from tieredctl.model.events import MetadataEvent
from tieredctl.model.ids import TopicIdPartition

SCREENS = Path(__file__).parent / "screens"
NOW = ("--now", "2026-11-22T00:00:00Z")
UTF_8 = {"LC_ALL": "en_US.UTF-8"}
C_LOCALE = {"LC_ALL": "C"}


@pytest.fixture
def crashed(captures: Path) -> Path:
    """What a cluster left that crashed again and again: many copies never ended."""
    return captures / "aiven-crash-4.3.1" / "data"


@pytest.fixture
def troubled(tmp_path: Path) -> Path:
    """4,000 segments: one is not there, one was copied twice, one copy and one deletion never ended."""
    events: list[MetadataEvent] = []
    for number in range(4000):
        first = 10 * number
        if number == 3000:
            events.append(started(number, first, first + 9, {number // 500: first}))
        elif number != 1777:
            events += copied(number, first, first + 9, {number // 500: first})
    again = copied(5000, 25_000, 25_009, {5: 25_000})
    write_events(tmp_path, *events, *again, updated(0, DELETING))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("80-columns", {"COLUMNS": "80", **UTF_8}),
        ("80-columns", {"COLUMNS": "80", "NO_COLOR": "1", **UTF_8}),
        ("200-columns", {"COLUMNS": "200", **UTF_8}),
        ("40-columns", {"COLUMNS": "40", **UTF_8}),
        ("80-columns-ascii", {"COLUMNS": "80", **C_LOCALE}),
        ("40-columns-ascii", {"COLUMNS": "40", **C_LOCALE}),
    ],
    ids=["80", "no color", "200", "40", "ascii", "narrow ascii"],
)
@pytest.mark.parametrize("cluster", ["crashed", "troubled"])
def test_a_screen_shows_what_offsets_are(
    cluster: str,
    name: str,
    variables: dict[str, str],
    request: pytest.FixtureRequest,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    selected = ("--topic", "gone33") if cluster == "crashed" else ()

    shown = timeline(tieredctl, request.getfixturevalue(cluster), *selected)

    width = int(variables["COLUMNS"])
    assert shown.exit_code == 0
    assert shown.out == (SCREENS / f"timeline-{cluster}-{name}.txt").read_text(encoding="utf-8")
    assert all(len(line) <= width for line in shown.out.splitlines())
    assert shown.out.isascii() == ("LC_ALL" in variables and variables["LC_ALL"] == "C")


def timeline(tieredctl: Tieredctl, log_dir: Path, *words: str | Path) -> Outcome:
    return tieredctl("metadata", "segments", "--log-dir", log_dir, "--timeline", *NOW, *words)


def test_a_document_has_the_gaps_and_overlaps_that_epochs_shows(tmp_path: Path, tieredctl: Tieredctl) -> None:
    write_events(
        tmp_path,
        *(
            event
            for number, first, last in ((1, 0, 9), (2, 8, 19), (3, 30, 39))
            for event in copied(number, first, last)
        ),
        started(4, 40, 49),
        *copied(5, 3, 3),
        updated(5, DELETING),
    )

    (found,) = timeline(tieredctl, tmp_path, "-o", "json").document()["summary"]["timelines"]

    (epoch,) = tieredctl("metadata", "epochs", "t:0", "--log-dir", tmp_path, "-o", "json").document()["items"]
    assert (found["gaps"], found["overlaps"]) == (epoch["gaps"], epoch["overlaps"]) == ([[20, 29]], [[8, 9]])
    assert (found["copied"], found["copying"], found["deleting"]) == ([[0, 19], [30, 39]], [[40, 49]], [[3, 3]])
    assert (found["missing"], found["unknown"], found["localLogStartOffset"]) == ([], [], None)


def test_segments_are_listed_as_before_beside_it(crashed: Path, tieredctl: Tieredctl) -> None:
    plain = tieredctl("metadata", "segments", "--log-dir", crashed, "-o", "json").document()

    drawn = timeline(tieredctl, crashed, "-o", "json").document()

    timelines = drawn["summary"].pop("timelines")
    assert drawn == plain
    assert len(timelines) == 9


def test_what_the_disk_has_is_drawn_beside_it(captures: Path, tieredctl: Tieredctl) -> None:
    shown = timeline(tieredctl, captures / "kafka-4.3.1" / "data", "--topic", "slow7")

    assert "on the disk: 0..286" in shown.out
    assert [line.split()[0] for line in shown.out.splitlines()[1:5]] == ["copied", "local", "epoch", "offset"]


def test_what_no_segment_holds_is_unknown_where_metadata_is_damaged(troubled: Path, tieredctl: Tieredctl) -> None:
    (log,) = troubled.glob("__remote_log_metadata-*/*.log")
    log.write_bytes(log.read_bytes()[:-5] + b"wrong")

    found = timeline(tieredctl, troubled, "-o", "json")

    (drawn,) = found.document()["summary"]["timelines"]
    assert found.exit_code != 0
    assert drawn["gaps"] == drawn["missing"] == []
    assert [17_770, 17_779] in drawn["unknown"]


def test_of_many_partitions_those_with_trouble_are_drawn(tmp_path: Path, tieredctl: Tieredctl) -> None:
    partitions = [TopicIdPartition(PARTITION.topic_id, "t", number) for number in range(2 * MOST_DRAWN)]
    last = partitions[-1]
    whole = (event for one in partitions for event in copied(one.partition + 1, 0, 9, partition=one))
    write_events(tmp_path, *whole, *copied(100, 20, 29, partition=last))

    drawn = timeline(tieredctl, tmp_path)

    names = [line.split(":")[0] for line in drawn.out.splitlines() if "offsets" in line]
    assert names == [f"t-{last.partition}", *(f"t-{number}" for number in range(MOST_DRAWN - 1))]
    assert f"Drawn are {MOST_DRAWN} of {len(partitions)} partitions, those with trouble first" in drawn.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--state", "COPY_SEGMENT_STARTED"), "--timeline draws whole partitions"),
        (("--segment-id", "A" * 22), "--timeline draws whole partitions"),
        (("-o", "csv"), "--timeline has no form for -o csv"),
        (("-o", "wide"), "--timeline has no form for -o wide"),
        (("-o", "jsonl"), "--timeline has no form for -o jsonl"),
        (("--topic", "no-such-topic"), "The metadata has no event of topic no-such-topic"),
    ],
)
def test_what_cannot_be_drawn_is_a_mistake_of_usage(
    words: tuple[str, ...], message: str, crashed: Path, tieredctl: Tieredctl
) -> None:
    outcome = timeline(tieredctl, crashed, *words)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert message in outcome.err


def test_colours_are_beside_the_signs(crashed: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = timeline(tieredctl, crashed, "--topic", "gone33").out
    monkeypatch.setattr(terminal, "has_colours", lambda _: True)

    shown = timeline(tieredctl, crashed, "--topic", "gone33").out

    assert "\x1b[33m" in shown
    assert "".join(piece.split("m", 1)[-1] for piece in f"m{shown}".split("\x1b[")) == plain


def test_deleted_segments_have_a_lane_of_their_own_on_request(log_dir: Path, tieredctl: Tieredctl) -> None:
    without, with_deleted = (
        timeline(tieredctl, log_dir, *words, "-o", "json").document()["summary"]["timelines"][0]
        for words in ((), ("--all",))
    )

    assert (without["deleted"], with_deleted["deleted"]) == ([], [[0, 9]])
    assert without["copied"] == with_deleted["copied"] == [[10, 19]]
    assert with_deleted["copying"] == [[20, 29]]
