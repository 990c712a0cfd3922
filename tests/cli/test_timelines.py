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


@pytest.mark.parametrize("cluster", ["crashed", "troubled"])
def test_a_screen_shows_what_offsets_are(
    cluster: str, request: pytest.FixtureRequest, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_dir: Path = request.getfixturevalue(cluster)
    selected = ("--topic", "gone33") if cluster == "crashed" else ()
    for columns, locale in ((80, UTF_8), (200, UTF_8), (40, UTF_8), (80, C_LOCALE), (40, C_LOCALE)):
        for no_colour in ((), ("NO_COLOR",)) if (columns, locale) == (80, UTF_8) else ((),):
            for variable, value in {"COLUMNS": str(columns), **locale, **dict.fromkeys(no_colour, "1")}.items():
                monkeypatch.setenv(variable, value)

            shown = timeline(tieredctl, log_dir, *selected)

            name = f"timeline-{cluster}-{columns}-columns{'-ascii' if locale is C_LOCALE else ''}.txt"
            assert (shown.exit_code, shown.out) == (0, (SCREENS / name).read_text(encoding="utf-8")), name
            assert all(len(line) <= columns for line in shown.out.splitlines()), name
            assert shown.out.isascii() is (locale is C_LOCALE), name
            monkeypatch.delenv("NO_COLOR", raising=False)


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


def test_of_many_partitions_those_with_trouble_are_drawn(tmp_path: Path, tieredctl: Tieredctl) -> None:
    partitions = [TopicIdPartition(PARTITION.topic_id, "t", number) for number in range(2 * MOST_DRAWN)]
    last = partitions[-1]
    whole = (event for one in partitions for event in copied(one.partition + 1, 0, 9, partition=one))
    write_events(tmp_path, *whole, *copied(100, 20, 29, partition=last))

    drawn = timeline(tieredctl, tmp_path)

    names = [line.split(":")[0] for line in drawn.out.splitlines() if "offsets" in line]
    assert names == [f"t-{last.partition}", *(f"t-{number}" for number in range(MOST_DRAWN - 1))]


def test_what_cannot_be_drawn_is_a_mistake_of_usage(crashed: Path, tieredctl: Tieredctl) -> None:
    for words in (
        ("--state", "COPY_SEGMENT_STARTED"),
        ("--segment-id", "A" * 22),
        *(("-o", output) for output in ("csv", "wide", "jsonl")),
        ("--topic", "no-such-topic"),
    ):
        assert timeline(tieredctl, crashed, *words)[:2] == (2, ""), words


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
