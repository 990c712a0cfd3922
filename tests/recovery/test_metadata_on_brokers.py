"""`recover metadata` on real brokers that lost the metadata topic: while they ran, and while they were stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin._acl import AclOperation

from tests.cli.command_line import Outcome
from tests.rigs.access_rules import grant, scram_config
from tests.rigs.broker import METADATA_PARTITIONS, METADATA_TOPIC
from tests.rigs.driven_brokers import jars_of
from tests.rigs.forgetful_cluster import ORDERS, PARTITIONS, ForgetfulCluster, forgetful_cluster
from tests.rigs.killed_runs import killed_runs
from tieredctl.cli.main import run
from tieredctl.ops.metadata_recovery.recovery_plan import HOLD_BACK

pytestmark = pytest.mark.integration


OLDER = pytest.param("3.9.1", marks=pytest.mark.exhaustive("metadata recovery on 3.9.1"))


@pytest.fixture(scope="module", params=["4.3.1", OLDER])
def cluster(request: pytest.FixtureRequest) -> Iterator[ForgetfulCluster]:
    """The tests change it one after another."""
    if request.param == "4.3.1":
        yield request.getfixturevalue("forgetful_4")
        return
    with forgetful_cluster(jars_of(request.param)) as made:
        yield made


@dataclass(frozen=True)
class CommandLine:
    """The command line, on this cluster."""

    cluster: ForgetfulCluster
    capfd: pytest.CaptureFixture[str]

    def run(self, *words: str | Path, server: str | None = None) -> Outcome:
        live = ("--bootstrap-server", server or self.cluster.broker.bootstrap_server)
        code = run([*map(str, words), *live, "-o", "json"])
        return Outcome(code, *self.capfd.readouterr())

    def recover(
        self, *words: str | Path, server: str | None = None, told_partitions: int | None = METADATA_PARTITIONS
    ) -> Outcome:
        store = ("--store", f"file:{self.cluster.broker.remote_dir}", "--layout", "local")
        told = () if told_partitions is None else ("--metadata-partitions", str(told_partitions))
        return self.run("recover", "metadata", *store, *told, *words, server=server)

    def apply(
        self, *words: str | Path, server: str | None = None, told_partitions: int | None = METADATA_PARTITIONS
    ) -> Outcome:
        sure = ("--apply", "--yes", "--cluster-id", self.cluster.broker.cluster_id)
        return self.recover(*sure, *words, server=server, told_partitions=told_partitions)

    def put_back(self, plan: Path) -> Outcome:
        """The log starts of a plan, in the broker's files."""
        sure = ("--apply", "--yes", "--cluster-id", self.cluster.broker.cluster_id)
        words = ("recover", "log-starts", plan, "--log-dir", self.cluster.broker.log_dir, *sure)
        code = run([*map(str, words), "-o", "json"])
        return Outcome(code, *self.capfd.readouterr())

    def segments(self) -> list[dict[str, object]]:
        """What the metadata has of `orders`, but for who said it, and when and where."""
        outside = ("brokerId", "eventTimestampMs", "metadataOffset")
        items = self.run("metadata", "segments", "--topic", ORDERS).document()["items"]
        return [{name: value for name, value in item.items() if name not in outside} for item in items]

    def statuses(self, *metadata: str | Path) -> dict[str, set[str]]:
        """Of the store's objects, by partition, as a scan by this metadata has them."""
        store = ("--store", f"file:{self.cluster.broker.remote_dir}", "--layout", "local", "--min-age", "0s")
        run(["orphans", "scan", *map(str, metadata), *store, "-o", "json"])
        found: dict[str, set[str]] = {}
        for item in json.loads(self.capfd.readouterr().out)["items"]:
            found.setdefault(f"{item['key'].split('-')[0]}-{item['partition']}", set()).add(item["status"])
        return found


@pytest.fixture
def tieredctl(cluster: ForgetfulCluster, capfd: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(cluster, capfd)


@pytest.fixture(scope="module")
def remembered() -> list[dict[str, object]]:
    """What the metadata had before it was lost; filled by the first test."""
    return []


def test_whole_metadata_leaves_nothing_to_recover(
    cluster: ForgetfulCluster, tieredctl: CommandLine, remembered: list[dict[str, object]]
) -> None:
    remembered[:] = tieredctl.segments()

    outcome = tieredctl.recover()

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["toRecover"], summary["leftOut"]) == (0, 0, 0), outcome.err
    assert summary["inMetadata"] == len(remembered) > 2 * PARTITIONS


def test_a_user_who_may_not_write_events_is_told_so(
    cluster: ForgetfulCluster, tieredctl: CommandLine, tmp_path: Path, remembered: list[dict[str, object]]
) -> None:
    cluster.forget_while_it_runs()
    for topic in (METADATA_TOPIC, ORDERS):
        grant(cluster.broker, topic, AclOperation.DESCRIBE)
        grant(cluster.broker, topic, AclOperation.READ)
    config = scram_config(tmp_path, cluster.broker)
    server = cluster.broker.secure_listeners.sasl_ssl

    outcome = tieredctl.apply("--command-config", config, server=server)

    assert (outcome.exit_code, "Describe and Write on topic" in outcome.err) == (1, True), outcome.err
    assert tieredctl.segments() == []


def test_a_partition_count_that_nobody_tells_or_brokers_are_not_configured_with_is_refused(
    tieredctl: CommandLine,
) -> None:
    for told in (None, METADATA_PARTITIONS + 1):
        outcome = tieredctl.apply(told_partitions=told)
        assert outcome.exit_code == 2, (told, outcome.err)
    assert tieredctl.segments() == []


def test_what_was_lost_while_brokers_ran_is_recovered(
    cluster: ForgetfulCluster, tieredctl: CommandLine, remembered: list[dict[str, object]]
) -> None:
    planned = tieredctl.recover()
    outcome = tieredctl.apply()

    again = tieredctl.apply()
    assert (planned.exit_code, planned.document()["summary"]["toRecover"]) == (3, len(remembered)), planned.err
    assert (outcome.exit_code, outcome.document()["summary"]["recovered"]) == (0, len(remembered)), outcome.err
    assert tieredctl.segments() == remembered
    assert cluster.read() == cluster.written
    assert (again.exit_code, again.document()["summary"]["toRecover"]) == (0, 0), again.err


def test_killed_at_any_moment_another_run_registers_the_rest(cluster: ForgetfulCluster, tieredctl: CommandLine) -> None:
    before, broker, remote = tieredctl.segments(), cluster.broker, cluster.broker.remote_dir
    places = ("--store", f"file:{remote}", "--layout", "local", "--bootstrap-server", broker.bootstrap_server)
    told = ("--metadata-partitions", str(METADATA_PARTITIONS))
    words = ("recover", "metadata", *places, *told, "--apply", "--yes", "--cluster-id", broker.cluster_id)
    left: set[int] = set()

    for moment in killed_runs(words, remote, cluster.forget_while_it_runs, tieredctl.segments, [remote], ["produce"]):
        finished = [one for one in tieredctl.segments() if one["state"] == "COPY_SEGMENT_FINISHED"]
        assert all(one in before for one in finished), moment
        left.add(len(finished))
    assert tieredctl.segments() == before
    assert len(left) > 2, "some runs were killed amid their events"


def test_what_was_lost_while_brokers_were_stopped_is_not_recovered_below_a_log_start_that_moved(
    cluster: ForgetfulCluster, tieredctl: CommandLine
) -> None:
    cluster.forget_while_it_is_stopped()
    before = cluster.objects()

    outcome = tieredctl.apply()

    codes = [finding["code"] for finding in outcome.document()["summary"]["findings"]]
    assert (outcome.exit_code, codes.count("log-start-above-store")) == (3, PARTITIONS), outcome.err
    assert outcome.document()["summary"]["toRecover"] == 0
    assert cluster.objects() == before


def test_what_was_lost_is_no_orphan_by_the_live_topic_nor_by_the_brokers_disk(
    cluster: ForgetfulCluster, tieredctl: CommandLine
) -> None:
    broker = cluster.broker

    for metadata in (("--bootstrap-server", broker.bootstrap_server), ("--log-dir", broker.log_dir)):
        found = tieredctl.statuses(*metadata)

        assert len(found) == PARTITIONS
        assert all("unknown" in statuses and "orphan" not in statuses for statuses in found.values()), found


def test_put_back_as_the_plan_says_all_is_read_again(
    cluster: ForgetfulCluster, tieredctl: CommandLine, remembered: list[dict[str, object]], tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(tieredctl.recover().out)
    running = tieredctl.put_back(plan)
    cluster.broker.stop()
    put_back = tieredctl.put_back(plan)
    again = tieredctl.put_back(plan)
    cluster.hold_back(HOLD_BACK)
    cluster.broker.start()

    half = tieredctl.apply("--partition", "0")
    by_half = tieredctl.statuses("--log-dir", cluster.broker.log_dir)
    outcome = tieredctl.apply()

    recovered = tieredctl.segments()
    cluster.broker.stop()
    cluster.let_go()
    cluster.broker.start()
    assert (running.exit_code, put_back.exit_code, again.exit_code) == (11, 0, 0), running.err + put_back.err
    assert put_back.document()["summary"]["done"] == PARTITIONS == again.document()["summary"]["inPlace"]
    assert (half.exit_code, outcome.exit_code, outcome.document()["summary"]["left"]) == (0, 0, 0), outcome.err
    # The recovered events say when segments were stored, but their records do not: nothing else became an orphan.
    assert by_half == {f"{ORDERS}-{one}": {"owned" if one == 0 else "unknown"} for one in range(PARTITIONS)}
    assert recovered == remembered
    assert cluster.read() == cluster.written
    assert cluster.log_starts() == [0] * PARTITIONS
