"""A partition over its offsets on a page: what the terminal draws, with a sign beside every colour of trouble."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cli.command_line import this_process
from tests.cli.crashed_cluster import CAPTURE
from tests.metadata_logs import PARTITION, copied, started, write_events
from tieredctl.cli.timelines import MOST_DRAWN as MOST_CHOSEN
from tieredctl.drawing.scale import OffsetRanges
from tieredctl.drawing.timeline import Part, PartRanges, Timeline
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.snapshot import PartitionFacts
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.timeline.partition_timeline import MOST_DRAWN, logs_of_leaders, timelines_of_found
from tieredctl.report.plot import Plot
from tieredctl.report.timelines import timeline_plot
from tieredctl.wiring.places import MetadataPlace


def plot_of(parts: dict[Part, list[tuple[int, int]]]) -> Plot:
    ranges = {part: OffsetRanges.of(pairs) for part, pairs in parts.items()}
    segments = {part: PartRanges(found, np.unique(found.firsts), len(found)) for part, found in ranges.items()}
    return timeline_plot("timeline-1", "orders-0 over its offsets", Timeline(segments, [(0, 0), (3, 50)]))


def texts(plot: Plot) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", plot.svg)


@pytest.mark.parametrize(
    ("part", "sign", "colour"),
    [
        (Part.GAP, "X", "fill-error"),
        (Part.MISSING, "!", "fill-critical"),
        (Part.UNKNOWN, "?", "fill-unknown"),
        (Part.OVERLAP, "=", "fill-series-4"),
    ],
)
def test_trouble_of_a_single_offset_has_its_colour_and_its_sign(part: Part, sign: str, colour: str) -> None:
    far = 2**62
    plot = plot_of({Part.COPIED: [(0, far)], part: [(1_000, 1_000)]})

    assert sign in texts(plot)
    assert colour in plot.svg
    assert "1000" in plot.description
    assert any("1000" in row for row in plot.numbers[0])


def test_lanes_epochs_and_the_first_and_last_offset_are_named() -> None:
    said = texts(plot_of({Part.COPIED: [(0, 99)], Part.COPYING: [(90, 120)], Part.LOCAL: [(80, 200)]}))

    for text in ("copied", "copying", "local", "epoch", "offset", "0", "3", "200"):
        assert text in said
    assert "deleting" not in said


def test_ten_thousand_segments_are_no_larger_than_a_thousand() -> None:
    small, large = (
        plot_of({Part.COPIED: [(10 * number, 10 * number + 8) for number in range(count)]}) for count in (1_000, 10_000)
    )

    assert len(large.svg) < 2 * len(small.svg)


def test_a_page_has_the_partitions_with_the_gravest_findings(captures: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"

    this_process("metadata", "stuck", "--log-dir", captures / CAPTURE / "data", "--report", page)

    titles = re.findall(r'<h2 id="timeline-\d+-title">([^<]*)</h2>', page.read_text())
    assert 1 < len(titles) <= MOST_DRAWN
    assert all(title.endswith("over its offsets") for title in titles)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("metadata", "stuck"), "Not drawn, but with findings too: t-6, t-7, t-8."),
        (("metadata", "segments", "--timeline"), f"Drawn are {MOST_CHOSEN} of 9 partitions, those with trouble first"),
    ],
    ids=["stuck", "segments"],
)
def test_a_page_says_that_it_does_not_draw_all_partitions(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    partitions = [replace(PARTITION, partition=number) for number in range(9)]
    started_ones = [started(number + 1, 0, 9, partition=one) for number, one in enumerate(partitions)]
    write_events(tmp_path / "log", *started_ones)
    page = tmp_path / "page.html"

    this_process(*words, "--log-dir", tmp_path / "log", "--report", page)

    assert f"<li>{said}" in page.read_text()


def test_what_was_drawn_is_written_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_events(tmp_path / "log", *copied(1, 0, 9), *copied(2, 20, 29), started(3, 30, 39))

    where = ("--log-dir", tmp_path / "log", "--report", page)
    drawn = this_process("metadata", "segments", "--timeline", *where)

    assert drawn.exit_code == 0, drawn.err
    assert "X gap: no segment holds 10..19." in page.read_text()
    assert this_process("metadata", "segments", *where).exit_code == 2


def test_a_verification_draws_what_it_found(captures: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    where = ("--log-dir", captures / CAPTURE / "data", "--store", f"file:{captures / CAPTURE / 'bucket'}")

    verified = this_process("verify", *where, "--level", "listing", "--report", page)

    assert verified.exit_code == 3, verified.err
    assert "orders33-0 over its offsets" in page.read_text()


@pytest.mark.parametrize("words", [("status",), ("metadata", "stuck")], ids=" ".join)
def test_a_page_of_metadata_alone_draws_the_gravest_and_names_the_others(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    partitions = [replace(PARTITION, partition=number) for number in range(9)]
    write_events(tmp_path / "log", *(started(number + 1, 0, 9, partition=one) for number, one in enumerate(partitions)))
    page = tmp_path / "page.html"

    this_process(*words, "--log-dir", tmp_path / "log", "--report", page)

    titles = re.findall(r'<h2 id="timeline-\d+-title">([^<]*)</h2>', page.read_text())
    assert titles == [f"t-{number} over its offsets" for number in range(MOST_DRAWN)]
    assert "<li>Not drawn, but with findings too: t-6, t-7, t-8.</li>" in page.read_text()
    assert "metadata segments --timeline --topic t --partition 6 --log-dir" in page.read_text()


def test_a_status_without_findings_draws_no_partition(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_events(tmp_path / "log", *copied(1, 0, 9), *copied(2, 10, 19))

    this_process("status", "--log-dir", tmp_path / "log", "--report", page)

    assert "over its offsets" not in page.read_text()


def leader_of(latest: int) -> PartitionFacts:
    return PartitionFacts(PARTITION, earliest=0, earliest_local=30, latest=latest)


def test_what_a_leader_no_longer_has_and_no_segment_holds_is_missing(tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9), *copied(2, 10, 19))
    about = Finding(FindingCode.LOCAL_REMOTE_GAP, str(PARTITION), "a gap", about=PartitionSubject(PARTITION, (20, 29)))
    with MetadataPlace((tmp_path,)).open() as stream:
        metadata = replayed(stream)
        found = timelines_of_found([metadata], [about], (), logs_of_leaders([leader_of(latest=50)]))

    (drawn,) = found.drawn
    parts = {part: ranges.ranges.pairs() for part, ranges in drawn.timeline.parts.items()}
    assert [*parts[Part.MISSING]] == [(20, 29)]
    assert [*parts[Part.LOCAL]] == [(30, 49)]
    assert [*parts[Part.COPIED]] == [(0, 9), (10, 19)]
