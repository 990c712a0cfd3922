"""`snapshot fetch`, KIP-630's "Fetching Snapshots", from a controller that answers as a test says."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path

import pytest

from tests.rigs.scripted_controller import (
    FENCED_EPOCH,
    NOT_FOUND,
    NOT_LEADER,
    OUT_OF_RANGE,
    UNKNOWN_EPOCH,
    ScriptedController,
)
from tests.rigs.snapshot_fetch import (
    CHUNK,
    CLEAN,
    CORRUPTION,
    FAILED,
    HEADER_BYTES,
    NAME,
    OTHER_SNAPSHOT,
    SNAPSHOT,
    TOPIC_ID,
    USAGE,
    Fetch,
    part_name,
)
from tieredctl.cli.main import run
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import KraftSnapshotName
from tieredctl.kafka.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from tieredctl.kafka.metadata_quorum import MetadataQuorum
from tieredctl.ops.snapshots.fetching import fetch_snapshot
from tieredctl.ports.snapshot_source import LeaderChanged, QuorumLeader, SnapshotChunk


def test_the_request_has_the_bytes_of_the_schema() -> None:
    topics = FetchSnapshotRequest.TopicSnapshot
    partitions = topics.PartitionSnapshot
    snapshot_id = partitions.SnapshotId(end_offset=1000, epoch=5)
    asked = partitions(partition=0, current_leader_epoch=0, snapshot_id=snapshot_id, position=0)
    topic = topics(name="__cluster_metadata", partitions=[asked])
    request = FetchSnapshotRequest(version=0, replica_id=2, max_bytes=(1 << 31) - 1, topics=[topic])
    assert request.encode().hex() == (
        "000000027fffffff02135f5f636c75737465725f6d6574616461746102000000000000000000000000000003e800000005"
        "000000000000000000000000"
    )


def test_the_response_has_the_bytes_of_the_schema() -> None:
    encoded = bytes.fromhex(
        "00000000000002135f5f636c75737465725f6d657461646174610200000000000000000000000003e8000000050000000000000000ae"
        "00000000000000000500000000000000"
    )

    (topic,) = FetchSnapshotResponse.decode(encoded, version=0).topics

    (partition,) = topic.partitions
    assert (partition.snapshot_id.end_offset, partition.snapshot_id.epoch) == (1000, 5)
    assert (partition.size, partition.position, bytes(partition.unaligned_records)) == (174, 0, bytes(4))


def test_the_latest_snapshot_goes_to_a_folder_under_its_own_name(fetch: Fetch, controller: ScriptedController) -> None:
    outcome = fetch("-o", "json")

    assert (outcome.exit_code, fetch.left()) == (CLEAN, {NAME: SNAPSHOT}), outcome
    (item,) = outcome.document()["items"]
    assert (item["endOffset"], item["epoch"], item["controller"], item["bytes"]) == (47, 5, 1, len(SNAPSHOT))
    assert controller.positions == list(range(0, len(SNAPSHOT), CHUNK))


def test_a_dry_run_fetches_all_and_keeps_nothing(fetch: Fetch, controller: ScriptedController) -> None:
    rehearsed = fetch("-o", "json", "--dry-run")

    assert (rehearsed.exit_code, fetch.left()) == (CLEAN, {}), rehearsed
    assert controller.positions == list(range(0, len(SNAPSHOT), CHUNK))
    assert "Would write" in rehearsed.err
    assert rehearsed.document()["items"] == fetch("-o", "json").document()["items"]


def test_a_dry_run_finds_damage(fetch: Fetch, controller: ScriptedController) -> None:
    controller.snapshot = SNAPSHOT[:-1] + b"x"

    assert (fetch("--dry-run").exit_code, fetch.left()) == (CORRUPTION, {})


@pytest.mark.parametrize("output", ["table", "wide", "json", "jsonl", "yaml", "csv"])
def test_every_output_format_names_the_file(fetch: Fetch, tmp_path: Path, output: str) -> None:
    outcome = fetch("--to", tmp_path / "a-copy", "-o", output)

    assert (outcome.exit_code, str(tmp_path / "a-copy") in outcome.out, outcome.err) == (CLEAN, True, "")


def test_one_that_is_named_goes_to_a_file(fetch: Fetch, tmp_path: Path) -> None:
    outcome = fetch("--snapshot", "00000000000000000047-0000000005", "--to", tmp_path / "copy")

    assert (outcome.exit_code, (tmp_path / "copy").read_bytes()) == (CLEAN, SNAPSHOT), outcome


def test_an_existing_file_is_replaced_only_if_told_so(fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "copy").write_bytes(b"mine")

    refused = fetch("--to", tmp_path / "copy")
    kept = (tmp_path / "copy").read_bytes()
    forced = fetch("--to", tmp_path / "copy", "--force")

    assert (refused.exit_code, kept, "already exists" in refused.err) == (FAILED, b"mine", True)
    assert (forced.exit_code, (tmp_path / "copy").read_bytes()) == (CLEAN, SNAPSHOT)


def test_without_a_snapshot_there_is_none_to_be_had(fetch: Fetch, controller: ScriptedController) -> None:
    controller.snapshot_id = None

    outcome = fetch()

    assert (outcome.exit_code, fetch.left()) == (FAILED, {})
    assert "Controller 1, the leader, has no snapshot yet" in outcome.err


@pytest.mark.parametrize("hides", [False, True], ids=["as the KIP says", "as Kafka 4.3 does"])
@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (NOT_FOUND, FAILED, "Controller 1 has no snapshot 47-5: it was deleted, or never made."),
        (OUT_OF_RANGE, FAILED, "Snapshot 47-5 of controller 1 ends before byte 200: it is another file."),
    ],
)
def test_snapshot_not_found_and_position_out_of_range_in_the_middle(
    fetch: Fetch, controller: ScriptedController, error: int, code: int, sentence: str, hides: bool
) -> None:
    controller.hides_errors = hides
    # Where the reason is hidden, the beginning is asked for once more, to see which of the two it is.
    controller.errors = [0, 0, error, *((error,) if hides and error == NOT_FOUND else ())]

    outcome = fetch()

    assert (outcome.exit_code, fetch.left()) == (code, {})
    assert sentence in outcome.err
    assert fetch().exit_code == CLEAN


@pytest.mark.parametrize("hides", [False, True], ids=["as the KIP says", "as Kafka 4.3 does"])
@pytest.mark.parametrize("error", [FENCED_EPOCH, UNKNOWN_EPOCH, NOT_LEADER])
def test_a_new_epoch_of_the_same_leader_is_learned(
    fetch: Fetch, controller: ScriptedController, error: int, hides: bool
) -> None:
    controller.hides_errors = hides
    chunk = controller._chunk

    def in_a_new_epoch(version: int, frame: bytes) -> object:
        if len(controller.positions) == 2 and controller.epoch == 5:
            controller.epoch, controller.errors = 6, [error]
        return chunk(version, frame)

    controller._chunk = in_a_new_epoch  # type: ignore[method-assign]

    outcome = fetch()

    assert (outcome.exit_code, fetch.left()) == (CLEAN, {NAME: SNAPSHOT}), outcome


def test_a_leader_that_stays_silent_about_its_epoch_ends_in_a_sentence(
    fetch: Fetch, controller: ScriptedController
) -> None:
    controller.errors = [0, *([FENCED_EPOCH] * 100_000)]
    fetch.be_patient(1000)

    outcome = fetch()

    assert outcome.exit_code == FAILED
    assert "Controller 1 does not serve snapshot 47-5: FENCED_LEADER_EPOCH." in outcome.err
    assert fetch.left() == {part_name(): SNAPSHOT[:HEADER_BYTES]}


def test_not_leader_is_followed_to_the_leader(fetch: Fetch, controller: ScriptedController) -> None:
    with ScriptedController(OTHER_SNAPSHOT, node_id=2, leader_id=2) as leader:
        controller.leader_id, controller.others = 2, {2: leader.port}
        outcome = fetch("-o", "json")

    assert (outcome.exit_code, fetch.left()) == (CLEAN, {NAME: OTHER_SNAPSHOT}), outcome
    assert outcome.document()["source"]["leader"] == 2


def test_without_the_leaders_address_the_other_given_ones_are_tried(
    fetch: Fetch, controller: ScriptedController
) -> None:
    controller.leader_id = 2
    with ScriptedController(OTHER_SNAPSHOT, node_id=2, leader_id=2) as leader:
        outcome = fetch(address=f"localhost:1,{controller.address},{leader.address}")
    fetch.be_patient(1000)
    alone = fetch("--force")

    assert (outcome.exit_code, fetch.left()) == (CLEAN, {NAME: OTHER_SNAPSHOT}), outcome
    assert (alone.exit_code, "reports controller 2 as the leader" in alone.err) == (FAILED, True)


def test_another_leader_in_the_middle_has_other_bytes_and_it_begins_again(
    fetch: Fetch, controller: ScriptedController
) -> None:
    chunk = controller._chunk
    with ScriptedController(OTHER_SNAPSHOT, node_id=2, leader_id=2, epoch=6) as leader:

        def and_step_down(version: int, frame: bytes) -> object:
            if len(controller.positions) == 3:
                controller.leader_id, controller.epoch, controller.others = 2, 6, {2: leader.port}
            return chunk(version, frame)

        controller._chunk = and_step_down  # type: ignore[method-assign]
        outcome = fetch()

    assert (outcome.exit_code, fetch.left()) == (CLEAN, {NAME: OTHER_SNAPSHOT}), outcome


def test_where_leaders_change_all_the_time_the_fetching_ends(tmp_path: Path) -> None:
    class Restless:
        def leader(self) -> QuorumLeader:
            return QuorumLeader(1, 1, KraftSnapshotName(47, 5), 0, 0)

        def chunk(self, snapshot: object, position: int, max_bytes: int) -> SnapshotChunk:
            raise LeaderChanged

    for dry_run in (False, True):
        with pytest.raises(TieredctlError) as ended:
            fetch_snapshot(Restless(), tmp_path, None, dry_run=dry_run)  # type: ignore[arg-type]

        assert ended.value.code is ErrorCode.BROKER_UNREACHABLE
        assert not [*tmp_path.iterdir()]


def test_every_refusal_has_its_sentence(fetch: Fetch, controller: ScriptedController) -> None:
    cases: list[tuple[int, int, str, str]] = [
        (31, FAILED, "The user may not fetch the metadata log.", "ClusterAction"),
        (104, USAGE, "belongs to another cluster than AQIDBAUGBwgJCgsMDQ4PEA.", "--cluster-id"),
        (35, FAILED, "knows no version of the request", "Kafka 3.3"),
        (42, FAILED, "answered INVALID_REQUEST.", ""),
        (9999, FAILED, "answered ", ""),
    ]
    for top_level, code, sentence, hint in cases:
        controller.top_level_error = top_level
        outcome = fetch("--cluster-id", TOPIC_ID)
        assert (outcome.exit_code, fetch.left()) == (code, {}), (top_level, code, sentence, hint)
        assert sentence in outcome.err, (top_level, code, sentence, hint)
        assert hint in outcome.err, (top_level, code, sentence, hint)


def test_a_brokers_listener_is_not_a_controllers(fetch: Fetch, controller: ScriptedController) -> None:
    controller.api_keys = (1, 3, 18)

    outcome = fetch()

    assert outcome.exit_code == USAGE
    assert "is not a controller's listener" in outcome.err
    assert "--bootstrap-server" in outcome.err


def test_a_damaged_batch_is_named_and_nothing_of_it_is_kept(fetch: Fetch, controller: ScriptedController) -> None:
    damaged = bytearray(SNAPSHOT)
    damaged[HEADER_BYTES + 100] ^= 1
    controller.snapshot = bytes(damaged)

    outcome = fetch()
    left = fetch.left()
    controller.snapshot = SNAPSHOT
    again = fetch("-o", "json")

    assert outcome.exit_code == CORRUPTION
    assert f"Snapshot 47-5 of controller 1 is damaged: CRC-32C does not match at byte {HEADER_BYTES}." in outcome.err
    assert left == {part_name(): SNAPSHOT[:HEADER_BYTES]}
    assert (again.exit_code, fetch.left()) == (CLEAN, {NAME: SNAPSHOT})
    assert again.document()["items"][0]["resumedFrom"] == HEADER_BYTES


@pytest.mark.parametrize("size", [-1, 0, 10, len(SNAPSHOT) - 1, len(SNAPSHOT) + 1, 1 << 62])
def test_a_size_that_is_not_the_snapshots_is_noticed(fetch: Fetch, controller: ScriptedController, size: int) -> None:
    controller.size = size

    outcome = fetch()

    assert outcome.exit_code in (FAILED, CORRUPTION), outcome
    assert NAME not in fetch.left()


def test_an_answer_that_is_none_ends_in_a_sentence(fetch: Fetch, controller: ScriptedController) -> None:
    cases: list[bytes] = [
        b"",
        b"\xff" * 50,
        b"\0" * 3,
        b"\0" * 7,
        struct.pack(">ih", 0, 0) + b"\xff\xff\xff\xff\x0f",
        b"\0" * 500,
    ]
    for garbage in cases:
        controller.garbage = garbage
        fetch.be_patient(1000)
        outcome = fetch()
        assert (outcome.exit_code, fetch.left()) == (FAILED, {}), outcome
        assert outcome.err.startswith("tieredctl: "), garbage
        assert "fault" not in outcome.err, garbage


def test_wrong_options_are_refused(fetch: Fetch) -> None:
    cases: list[tuple[tuple[str, ...], str]] = [
        (("--snapshot", "47"), "'47' does not name a snapshot."),
        (("--snapshot", "-1-5"), "does not name a snapshot."),
        (("--snapshot", "0-0"), "does not name a snapshot."),
        (("--snapshot", f"{1 << 63}-1"), "does not name a snapshot."),
        (("--snapshot", "٣-1"), "does not name a snapshot."),
        (("--max-bytes", "0"), "--max-bytes 0 is not from 1 to"),
        (("--max-bytes", "1TiB"), "--max-bytes 1TiB is not from 1 to"),
        (("--max-bytes", "many"), "'many' is not a number of bytes."),
        (("--bootstrap-server", "localhost:1"), "--bootstrap-controller and --bootstrap-server exclude each other."),
        (("--bootstrap-controller", "nowhere"), "'nowhere' is not HOST:PORT."),
    ]
    for words, sentence in cases:
        outcome = fetch(*words)
        assert (outcome.exit_code, fetch.left()) == (USAGE, {}), (words, sentence)
        assert sentence in outcome.err, (words, sentence)


def test_without_a_controller_it_says_which_options_name_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["snapshot", "fetch", "--to", str(tmp_path)])

    assert (code, "Give --bootstrap-controller or --bootstrap-server." in capfd.readouterr().err) == (USAGE, True)


@pytest.mark.parametrize(("name", "why"), [("backup/", "does not exist"), ("taken/", "is not a folder")])
def test_a_slash_at_the_end_means_a_folder(fetch: Fetch, tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "taken").touch()
    before = sorted(tmp_path.iterdir())

    outcome = fetch("--to", f"{tmp_path}/{name}")

    assert (outcome.exit_code, why in outcome.err) == (USAGE, True), outcome.err
    assert sorted(tmp_path.iterdir()) == before


def test_a_place_that_cannot_be_written_is_said_before_anything_is_fetched(
    fetch: Fetch, controller: ScriptedController, tmp_path: Path
) -> None:
    outcome = fetch("--to", tmp_path / "missing" / "copy")

    assert (outcome.exit_code, controller.positions) == (FAILED, [])
    assert "cannot be written" in outcome.err


def test_the_quorum_refuses_what_it_did_not_ask_for(controller: ScriptedController) -> None:
    with closing(MetadataQuorum(controller.address)) as quorum:
        leader = quorum.leader()
        assert leader.latest_snapshot is not None
        with pytest.raises(TieredctlError, match="has no snapshot 48-5"):
            quorum.chunk(leader.latest_snapshot._replace(end_offset=48), 0, 1)
