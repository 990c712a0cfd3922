"""`snapshot fetch` from real controllers that die meanwhile, or lose the snapshot, or leave the lead to another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.cli.command_line import this_process
from tests.refusals import refused_with
from tests.rigs.broker import KafkaBroker
from tests.rigs.controller_quorum import Quorum, controller_quorum
from tests.rigs.driven_brokers import jars_of
from tests.rigs.node_snapshots import asked_of_latest, make_snapshots, name_of, snapshots_of
from tests.rigs.waiting import wait_until
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import KraftSnapshotName
from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.kafka.metadata_quorum import MetadataQuorum
from tieredctl.model.clock import Clock
from tieredctl.ops.cluster.snapshot import ClusterSnapshot
from tieredctl.ops.doctor.quorum_rules import quorum_findings
from tieredctl.ops.inspection.inspect import identify
from tieredctl.ops.snapshots.fetching import FetchedSnapshot, fetch_snapshot

CLEAN, FAILED = 0, 1
SECONDS = 60
CHUNK = 150


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
    own_broker: KafkaBroker, tmp_path: Path
) -> None:
    folder, client = tmp_path / "snapshots", tmp_path / "client.properties"
    folder.mkdir()
    client.write_text(LOGIN)
    older, newer = snapshots_of(own_broker)[:2]
    controller, content = own_broker.controller_address, newer.read_bytes()
    left: list[bytes] = []

    def die_and_come_back_without_the_older() -> None:
        with refused_with(ErrorCode.BROKER_UNREACHABLE):
            fetched(controller, folder, name_of(newer), at_first=own_broker.kill, client=client, patience_seconds=5)
        left.extend(part.read_bytes() for part in folder.glob(f"{newer.name}*"))
        older.unlink()
        own_broker.start()

    with pytest.raises(TieredctlError) as deleted:
        fetched(controller, folder, name_of(older), at_first=die_and_come_back_without_the_older, client=client)
    done = fetched(controller, folder, name_of(newer), client=client)
    stranger = this_process("snapshot", "fetch", "--bootstrap-controller", controller, "--to", folder)

    assert deleted.value.code is ErrorCode.SNAPSHOT_UNAVAILABLE
    assert [bool(part) and content.startswith(part) for part in left] == [True]
    client.write_text(LOGIN.replace("operator", "guest"))
    guest = this_process(
        "snapshot", "fetch", "--bootstrap-controller", controller, "--command-config", client, "--to", folder
    )

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
    interrupted = tmp_path / "interrupted"
    interrupted.mkdir()

    whole, latest = asked_of_latest(nodes[first], lambda: fetched(followers, Path(mkdtemp(dir=tmp_path))))
    after = fetched(followers, interrupted, at_first=nodes[first].kill)

    assert (whole.controller, Path(whole.file).read_bytes()) == (first, latest.read_bytes())
    assert after.controller != first
    own = nodes[after.controller].log_dir / "__cluster_metadata-0" / Path(after.file).name
    assert {path.name: path.read_bytes() for path in interrupted.iterdir()} == {own.name: own.read_bytes()}
    for node in nodes.values():
        assert unknown_files(node.log_dir) == []
    wait_until(lambda: lagging(quorum.broker) == [f"controller {first}"], "doctor sees the dead voter", SECONDS)


def lagging(broker: KafkaBroker) -> list[str]:
    """The nodes that doctor calls behind."""
    with closing(LiveCluster(broker.bootstrap_server)) as cluster:
        facts = ClusterSnapshot(Clock(0, 0), quorum=cluster.quorum())
    return [finding.subject for finding in quorum_findings(facts) if finding.code == "quorum-voter-lags"]


def unknown_files(log_dir: Path) -> list[Path]:
    """What `store inspect` does not know by its name."""
    return [path for path in log_dir.rglob("*") if path.is_file() and identify(path.name, b"") is None]
