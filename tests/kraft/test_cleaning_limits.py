"""By whose limits a stopped node is cleaned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cleaned_nodes import LIMIT_MS, NOW_MS, names
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.snapshot_cleaning import SnapshotCleaning, snapshot_cleaning


def limits_of(cleaning: SnapshotCleaning) -> tuple[int, int]:
    return cleaning.plan.limits.max_age_ms, cleaning.plan.limits.max_bytes


def test_limits_are_the_nodes_own_or_kafkas(log_dir: Path) -> None:
    own, default = log_dir / "server.properties", "Kafka's default: "
    with snapshot_cleaning(log_dir, NOW_MS) as cleaning:
        assert limits_of(cleaning) == (604_800_000, 104_857_600)
        assert set(sources_of(cleaning)) == {f"{default}{own} has none"}

    (log_dir.parent / "server.properties").write_text("node.id=2\nmetadata.max.retention.ms=1\n")
    own.unlink()
    with snapshot_cleaning(log_dir, NOW_MS) as cleaning:
        assert limits_of(cleaning) == (604_800_000, 104_857_600)
        assert set(sources_of(cleaning)) == {f"{default}no file of the node was found"}

    beside = log_dir.parent / "server.properties"
    beside.write_text("node.id=1\nmetadata.max.retention.ms=5\nmetadata.max.retention.bytes=-1\n")
    with snapshot_cleaning(log_dir, NOW_MS) as cleaning:
        assert limits_of(cleaning) == (5, -1)
        assert set(sources_of(cleaning)) == {str(beside)}
    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=7) as cleaning:
        assert limits_of(cleaning) == (7, -1)
        assert sources_of(cleaning) == ["--metadata-max-retention-ms", str(beside)]

    beside.write_text("node.id=1\nmetadata.max.retention.ms=soon\n")
    assert refused_settings(log_dir) is ErrorCode.USAGE


def sources_of(cleaning: SnapshotCleaning) -> list[str]:
    return list(cleaning.plan.summary()["limitsFrom"].values())


def test_by_limits_that_may_not_be_the_nodes_nothing_goes(log_dir: Path, tmp_path: Path) -> None:
    (log_dir / "server.properties").unlink()
    before, receipts = names(log_dir), tmp_path / "receipts"

    for max_age_ms, max_bytes in ((None, None), (LIMIT_MS, None), (None, 1)):
        with (
            snapshot_cleaning(log_dir, NOW_MS, max_age_ms=max_age_ms, max_bytes=max_bytes) as cleaning,
            pytest.raises(TieredctlError, match="is not known") as error,
        ):
            cleaning.apply(receipts)
        assert error.value.code is ErrorCode.USAGE
    assert (names(log_dir), receipts.exists()) == (before, False)

    elsewhere = tmp_path / "etc.properties"
    elsewhere.write_text("node.id=1\nmetadata.max.retention.ms=1000\n")
    with snapshot_cleaning(log_dir, NOW_MS, server_properties=elsewhere) as cleaning:
        assert cleaning.apply(receipts).is_complete


@pytest.mark.parametrize("text", [None, "node.id=2\n", "", "node.id=\\u12"])
def test_a_named_file_must_be_the_nodes(log_dir: Path, tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "etc.properties"
    if text is not None:
        file.write_text(text)

    with (
        pytest.raises(TieredctlError) as error,
        snapshot_cleaning(log_dir, NOW_MS, server_properties=file),
    ):
        pass

    assert error.value.code is ErrorCode.USAGE


def refused_settings(log_dir: Path) -> ErrorCode:
    with pytest.raises(TieredctlError) as error, snapshot_cleaning(log_dir, NOW_MS):
        pass
    return error.value.code
