"""`snapshot fetch` from real controllers: the file is the controller's own, byte for byte, whatever happens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import Outcome
from tests.rigs.broker import KafkaBroker
from tests.rigs.controller_quorum import Quorum, controller_quorum
from tests.rigs.driven_brokers import DrivenBroker, jars_of
from tests.rigs.waiting import wait_until
from tieredctl.cli.main import run
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import KraftSnapshotName, parse_kraft_snapshot_name
from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.kafka.local_metadata_logs import read_local_metadata_logs
from tieredctl.kafka.metadata_quorum import MetadataQuorum
from tieredctl.model.clock import Clock
from tieredctl.ops.cluster.snapshot import ClusterSnapshot
from tieredctl.ops.doctor.quorum_rules import quorum_findings
from tieredctl.ops.inspection.inspect import identify
from tieredctl.ops.snapshots.fetching import FetchedSnapshot, fetch_snapshot

CLEAN, FAILED, USAGE = 0, 1, 2
SECONDS = 60
CHUNK = 150
LAGS = {"quorum-voter-lags", "quorum-observer-lags", "metadata-log-untrimmed"}


def snapshots_of(node: KafkaBroker) -> Sequence[Path]:
    """The finished snapshots that a node made, the latest last."""
    found = (node.log_dir / "__cluster_metadata-0").glob("*.checkpoint")
    return sorted(path for path in found if not path.name.startswith("0" * 20))


def name_of(file: Path) -> KraftSnapshotName:
    found = parse_kraft_snapshot_name(file.name)
    assert found is not None
    return found


def make_snapshots(node: KafkaBroker, broker: KafkaBroker | None = None, until: int = 1) -> None:
    """Makes topics until the node has so many snapshots."""
    server = (broker or node).bootstrap_server
    admin = AdminClient({"bootstrap.servers": server, "log_level": 0})
    made = 0

    def has_enough() -> bool:
        nonlocal made
        for future in admin.create_topics([NewTopic(f"for-a-snapshot-{made}", 8, 1)]).values():
            future.result()
        made += 1
        return len(snapshots_of(node)) >= until

    wait_until(has_enough, "there are enough snapshots", SECONDS)


def tieredctl(capfd: pytest.CaptureFixture[str], *words: str | Path) -> Outcome:
    capfd.readouterr()
    code = run(["snapshot", "fetch", *map(str, words)])
    return Outcome(code, *capfd.readouterr())


@pytest.mark.parametrize("by", ["--bootstrap-controller", "--bootstrap-server"])
@pytest.mark.parametrize("chunk", ["1KiB", "8MiB"])
def test_the_file_is_the_controllers_own(
    driven: DrivenBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str], by: str, chunk: str
) -> None:
    broker = driven.broker
    address = broker.controller_address if by == "--bootstrap-controller" else broker.bootstrap_server
    cluster = ("--cluster-id", broker.cluster_id)

    outcome = tieredctl(capfd, by, address, "--to", tmp_path, "--max-bytes", chunk, *cluster, "-o", "json")

    latest = snapshots_of(broker)[-1]
    assert outcome.exit_code == CLEAN, outcome
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {latest.name: latest.read_bytes()}
    assert outcome.document()["items"][0]["bytes"] == latest.stat().st_size


def test_an_older_one_is_there_by_its_name(
    driven: DrivenBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    older = snapshots_of(driven.broker)[0]
    place = ("--bootstrap-controller", driven.broker.controller_address, "--to", tmp_path / "copy")

    outcome = tieredctl(capfd, *place, "--snapshot", older.name)

    assert (outcome.exit_code, (tmp_path / "copy").read_bytes()) == (CLEAN, older.read_bytes()), outcome


def test_kafka_hides_its_reasons_and_they_are_found_all_the_same(
    driven: DrivenBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    controller = driven.broker.controller_address
    latest = name_of(snapshots_of(driven.broker)[-1])
    missing = tieredctl(capfd, "--bootstrap-controller", controller, "--to", tmp_path, "--snapshot", "999999999-1")
    other = ("--cluster-id", "AAAAAAAAAAAAAAAAAAAAAQ")
    another_cluster = tieredctl(capfd, "--bootstrap-controller", controller, "--to", tmp_path, *other)
    broker = tieredctl(capfd, "--bootstrap-controller", driven.broker.bootstrap_server, "--to", tmp_path)
    with closing(MetadataQuorum(controller)) as quorum, pytest.raises(TieredctlError) as beyond:
        quorum.chunk(latest, 1 << 30, CHUNK)

    assert (missing.exit_code, "Controller 1 has no snapshot 999999999-1" in missing.err) == (FAILED, True), missing
    assert f"Its latest is {latest.end_offset}-{latest.epoch}" in missing.err
    assert (another_cluster.exit_code, "belongs to another cluster" in another_cluster.err) == (USAGE, True)
    assert (broker.exit_code, "is not a controller's listener" in broker.err) == (USAGE, True)
    assert f"ends before byte {1 << 30}" in beyond.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_leader_shows_how_old_its_log_is(driven: DrivenBroker) -> None:
    (on_disk,) = read_local_metadata_logs([driven.broker.log_dir])

    with closing(MetadataQuorum(driven.broker.controller_address)) as quorum:
        by_its_answer = quorum.log_begins_ms()

    assert on_disk.first_record_ms is not None
    assert by_its_answer is not None
    assert 0 <= by_its_answer - on_disk.first_record_ms < 1000 * SECONDS


@pytest.mark.parametrize("by", ["--bootstrap-controller", "--log-dir"])
def test_doctor_tells_age_and_size_of_the_latest(
    driven: DrivenBroker, capfd: pytest.CaptureFixture[str], by: str
) -> None:
    broker = driven.broker
    place = broker.controller_address if by == "--bootstrap-controller" else str(broker.log_dir)
    latest = snapshots_of(broker)[-1]

    run(["doctor", "--bootstrap-server", broker.bootstrap_server, by, place, "-o", "json"])
    document = json.loads(capfd.readouterr().out)

    (finding,) = [item for item in document["items"] if item["code"] == "metadata-snapshot"]
    assert (finding["subject"], document["summary"]["voters"]) == ("node 1", 1)
    assert finding["evidence"]["endOffset"] == name_of(latest).end_offset
    assert finding["evidence"]["bytes"] == latest.stat().st_size
    assert 0 <= finding["evidence"]["ageMs"] < 1000 * SECONDS * SECONDS
    assert not {item["code"] for item in document["items"]} & LAGS


GUARDED = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="node" password="n0de" user_node="n0de" user_operator="s3cret" user_guest="s3cret";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node;User:operator;User:ANONYMOUS",
}
"""A controller's listener that wants a login, and serves one user of two."""
LOGIN = """
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
  username="operator" password="s3cret";
"""


@pytest.fixture
def own_broker() -> Iterator[KafkaBroker]:
    with KafkaBroker(jars_of("3.9.1"), properties=GUARDED) as broker:
        make_snapshots(broker, until=2)
        yield broker


def fetched(
    controller: str,
    folder: Path,
    snapshot: KraftSnapshotName | None = None,
    *,
    at_first: Callable[[], object] = lambda: None,
    client: Path | None = None,
    patience_seconds: float = SECONDS,
) -> FetchedSnapshot:
    """By small chunks, with something that happens after the first of them."""
    events = iter([at_first])
    with closing(MetadataQuorum(controller, client, patience_seconds)) as quorum:

        def tell(done: int, of: int) -> None:
            assert 0 <= done <= of
            next(events, lambda: None)()

        return fetch_snapshot(quorum, folder, snapshot, chunk_bytes=CHUNK, tell=tell)


@pytest.mark.integration
def test_after_a_kill_it_goes_on_and_where_the_snapshot_is_gone_that_is_said(
    own_broker: KafkaBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, client = tmp_path / "snapshots", tmp_path / "client.properties"
    folder.mkdir()
    client.write_text(LOGIN)
    older, newer = snapshots_of(own_broker)[:2]
    controller, content = own_broker.controller_address, newer.read_bytes()
    left: list[bytes] = []

    def die_and_come_back_without_the_older() -> None:
        with pytest.raises(TieredctlError) as unreachable:
            fetched(controller, folder, name_of(newer), at_first=own_broker.kill, client=client, patience_seconds=1)
        assert unreachable.value.code is ErrorCode.BROKER_UNREACHABLE
        left.extend(part.read_bytes() for part in folder.glob(f"{newer.name}*"))
        older.unlink()
        own_broker.start()

    with pytest.raises(TieredctlError) as deleted:
        fetched(controller, folder, name_of(older), at_first=die_and_come_back_without_the_older, client=client)
    done = fetched(controller, folder, name_of(newer), client=client)
    stranger = tieredctl(capfd, "--bootstrap-controller", controller, "--to", folder)

    assert deleted.value.code is ErrorCode.SNAPSHOT_UNAVAILABLE
    assert [bool(part) and content.startswith(part) for part in left] == [True]
    client.write_text(LOGIN.replace("operator", "guest"))
    guest = tieredctl(capfd, "--bootstrap-controller", controller, "--command-config", client, "--to", folder)

    assert (guest.exit_code, "ClusterAction" in guest.err) == (FAILED, True), guest
    assert (stranger.exit_code, "needs a login (SASL)" in stranger.err) == (FAILED, True), stranger
    assert done.resumed_from == len(left[0])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {newer.name: content}


@pytest.fixture
def quorum() -> Iterator[Quorum]:
    with controller_quorum(jars_of("4.3.1")) as made:
        make_snapshots(made.controllers[made.active_controller()], made.broker)
        yield made


@pytest.mark.integration
def test_the_leader_of_three_is_found_and_its_successor_after_it(quorum: Quorum, tmp_path: Path) -> None:
    first = quorum.active_controller()
    nodes = {1: quorum.broker, **quorum.controllers}
    followers = ",".join(node.controller_address for number, node in nodes.items() if number != first)
    folders = [tmp_path / "whole", tmp_path / "interrupted"]
    for folder in folders:
        folder.mkdir()

    whole = fetched(followers, folders[0])
    content = snapshots_of(nodes[first])[-1].read_bytes()
    after = fetched(followers, folders[1], at_first=nodes[first].kill)

    assert (whole.controller, [path.read_bytes() for path in folders[0].iterdir()]) == (first, [content])
    assert after.controller != first
    own = nodes[after.controller].log_dir / "__cluster_metadata-0" / after.path.name
    assert {path.name: path.read_bytes() for path in folders[1].iterdir()} == {own.name: own.read_bytes()}
    for node in nodes.values():
        assert unknown_files(node.log_dir) == []
    wait_until(lambda: lagging(quorum.broker) == [f"controller {first}"], "doctor sees the dead voter", SECONDS)


def lagging(broker: KafkaBroker) -> list[str]:
    """The nodes that doctor calls behind."""
    with closing(LiveCluster(broker.bootstrap_server)) as cluster:
        facts = ClusterSnapshot(Clock(0, 0), quorum=cluster.quorum())
    return [finding.subject for finding in quorum_findings(facts) if finding.code in LAGS]


def unknown_files(log_dir: Path) -> list[Path]:
    """What `store inspect` does not know by its name."""
    return [path for path in log_dir.rglob("*") if path.is_file() and identify(path.name, b"") is None]
