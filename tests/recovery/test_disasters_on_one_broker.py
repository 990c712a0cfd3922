"""The runbooks' two disasters in one go: the metadata topic and all indexes are lost before anything is mended, in
both orders, on one broker, whether it keeps running or is restarted. All records are back afterwards, as a consumer
reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome
from tests.rigs.broker import METADATA_PARTITIONS
from tests.rigs.forgetful_cluster import PARTITIONS, ForgetfulCluster
from tests.shares import divided
from tieredctl.cli.main import run
from tieredctl.ops.metadata_recovery.recovery_plan import HOLD_BACK

pytestmark = pytest.mark.integration

INDEXES = ("index", "timeindex", "txnindex", "snapshot")


def lose_indexes(cluster: ForgetfulCluster) -> None:
    """All of them, from the store and from what the broker has cached."""
    for suffix in INDEXES:
        for file in cluster.broker.remote_dir.glob(f"*/*.{suffix}"):
            file.unlink()


ORDERS_OF_LOSS: dict[str, tuple[Callable[[ForgetfulCluster], None], ...]] = {
    "metadata, then indexes": (ForgetfulCluster.forget_while_it_runs, lose_indexes),
    "indexes, then metadata": (lose_indexes, ForgetfulCluster.forget_while_it_runs),
    "metadata of a stopped broker, then indexes": (ForgetfulCluster.forget_while_it_is_stopped, lose_indexes),
    "indexes, then metadata of a stopped broker": (lose_indexes, ForgetfulCluster.forget_while_it_is_stopped),
}


def test_metadata_and_indexes_lost_in_any_order_come_back_with_all_records(
    forgetful_4: ForgetfulCluster, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    cluster = forgetful_4
    live = ("--bootstrap-server", cluster.broker.bootstrap_server)
    store = ("--store", f"file:{cluster.broker.remote_dir}", "--layout", "local", "-o", "json")
    sure = ("--apply", "--yes", "--cluster-id", cluster.broker.cluster_id)

    def tieredctl(*words: str | Path, places: tuple[str, ...] = (*live, *store)) -> Outcome:
        code = run([*map(str, words), *places])
        return Outcome(code, *capfd.readouterr())

    def put_log_starts_back() -> Outcome:
        """As the plan says, on the stopped broker, which is held back afterwards."""
        (tmp_path / "plan.json").write_text(tieredctl("recover", "metadata").out)
        cluster.broker.stop()
        disk = ("--log-dir", str(cluster.broker.log_dir), "-o", "json")
        outcome = tieredctl("recover", "log-starts", tmp_path / "plan.json", *sure, places=disk)
        cluster.hold_back(HOLD_BACK)
        cluster.broker.start()
        return outcome

    before = {path.name: path.stat().st_size for path in cluster.broker.remote_dir.glob("orders-*/*")}
    segments = sum(name.endswith(".log") for name in before)
    for order, losses in divided([*ORDERS_OF_LOSS.items()]):
        for lose in losses:
            lose(cluster)
        have_moved = cluster.log_starts() != [0] * PARTITIONS
        if have_moved:
            put_back = put_log_starts_back()
            assert (put_back.exit_code, put_back.document()["summary"]["done"]) == (0, PARTITIONS), (order, put_back)

        metadata = tieredctl("recover", "metadata", "--metadata-partitions", str(METADATA_PARTITIONS), *sure)
        (tmp_path / "verify.json").write_text(verified := tieredctl("verify", "--level", "full").out)
        indexes = tieredctl("recover", "indexes", "--verified", tmp_path / "verify.json", *sure)
        cluster.broker.stop()  # it forgets what it knew: all that it reads from now on, it reads from what was mended
        cluster.let_go()
        cluster.forget_caches()
        cluster.broker.start()

        told = metadata.document()["summary"]
        assert (told["recovered"], told["left"], told["leftOut"]) == (segments, 0, 0), (order, metadata.err)
        assert len(json.loads(verified)["items"]) >= 3 * segments, order
        # Where the log of events begins later now, what those before told stays unknown to the verify that named these.
        code = 0 if json.loads(verified)["summary"]["complete"] else 5
        assert (indexes.exit_code, indexes.document()["summary"]["segmentsInNeed"]) == (code, segments), order
        assert cluster.log_starts() == [0] * PARTITIONS, order
        assert cluster.read() == list(cluster.written), order
        assert {path.name: path.stat().st_size for path in cluster.broker.remote_dir.glob("orders-*/*")} == before
        again = tieredctl("recover", "indexes", "--all")
        assert (again.exit_code, again.document()["items"]) == (0, []), order
        scan = tieredctl("orphans", "scan", "--min-age", "0s").document()["summary"]
        # A topic that is new from its first record lacks none; one that lost its records is incomplete for good.
        assert (scan["complete"], scan["status"]["orphan"]["objects"]) == (have_moved, 0), order
