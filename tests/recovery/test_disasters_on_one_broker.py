"""The runbooks' two disasters in one go: the metadata topic and all indexes are lost before anything is mended, in
both orders, on one broker. All records are back afterwards, as a consumer reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome
from tests.rigs.broker import METADATA_PARTITIONS
from tests.rigs.driven_brokers import jars_of
from tests.rigs.forgetful_cluster import PARTITIONS, ForgetfulCluster, forgetful_cluster
from tieredctl.cli.main import run

pytestmark = pytest.mark.integration

INDEXES = ("index", "timeindex", "txnindex", "snapshot")


@pytest.fixture(scope="module")
def cluster() -> Iterator[ForgetfulCluster]:
    with forgetful_cluster(jars_of("4.3.1")) as made:
        yield made


def lose_indexes(cluster: ForgetfulCluster) -> None:
    """All of them, from the store and from what the broker has cached."""
    for suffix in INDEXES:
        for file in cluster.broker.remote_dir.glob(f"*/*.{suffix}"):
            file.unlink()


ORDERS_OF_LOSS: dict[str, tuple[Callable[[ForgetfulCluster], None], ...]] = {
    "metadata, then indexes": (ForgetfulCluster.forget_while_it_runs, lose_indexes),
    "indexes, then metadata": (lose_indexes, ForgetfulCluster.forget_while_it_runs),
}


def test_metadata_and_indexes_lost_in_any_order_come_back_with_all_records(
    cluster: ForgetfulCluster, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    live = ("--bootstrap-server", cluster.broker.bootstrap_server)
    store = ("--store", f"file:{cluster.broker.remote_dir}", "--layout", "local", "-o", "json")
    sure = ("--apply", "--yes", "--cluster-id", cluster.broker.cluster_id)

    def tieredctl(*words: str | Path) -> Outcome:
        code = run([*map(str, words), *live, *store])
        return Outcome(code, *capfd.readouterr())

    before = {path.name: path.stat().st_size for path in cluster.broker.remote_dir.glob("orders-*/*")}
    segments = sum(name.endswith(".log") for name in before)
    for order, losses in ORDERS_OF_LOSS.items():
        for lose in losses:
            lose(cluster)

        metadata = tieredctl("recover", "metadata", "--metadata-partitions", str(METADATA_PARTITIONS), *sure)
        (tmp_path / "verify.json").write_text(verified := tieredctl("verify", "--level", "full").out)
        indexes = tieredctl("recover", "indexes", "--verified", tmp_path / "verify.json", *sure)
        cluster.broker.stop()  # it forgets what it knew: all that it reads from now on, it reads from what was mended
        cluster.forget_caches()
        cluster.broker.start()

        told = metadata.document()["summary"]
        assert (told["recovered"], told["left"], told["leftOut"]) == (segments, 0, 0), (order, metadata.err)
        assert len(json.loads(verified)["items"]) >= 3 * segments, order
        assert (indexes.exit_code, indexes.document()["summary"]["segmentsInNeed"]) == (0, segments), order
        assert cluster.log_starts() == [0] * PARTITIONS, order
        assert cluster.read() == list(cluster.written), order
        assert {path.name: path.stat().st_size for path in cluster.broker.remote_dir.glob("orders-*/*")} == before
        again = tieredctl("recover", "indexes", "--all")
        assert (again.exit_code, again.document()["items"]) == (0, []), order
        refused = tieredctl("orphans", "scan", "--min-age", "0s").document()
        assert refused["summary"]["complete"] is False, order
        assert refused["summary"]["status"]["orphan"]["objects"] == 0, order
