"""docs/security.md, Azure: the letters of a signature that are enough to look, and to remove."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.command_line import REPOSITORY, Tieredctl
from tests.cli.crashed_bucket import UNFINISHED, FilledBucket, crashed_contents, planned_cluster
from tests.rigs.buckets import BUCKET, AzureContainer
from tests.rigs.object_servers import AZURE_ACCOUNT, AZURE_KEY, ObjectServer
from tieredctl.storage import azure_connection

LOOKING, REMOVING = "rl", "racwdl"


def forget_accounts() -> None:
    """As a new process would begin."""
    azure_connection._account.cache_clear()
    azure_connection._pipeline.cache_clear()


@pytest.fixture
def filled(azurite: ObjectServer, captures: Path) -> FilledBucket:
    filled = FilledBucket(AzureContainer(azurite.endpoint), crashed_contents(captures))
    filled.refill()
    return filled


@pytest.fixture
def signed_with(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Requests are signed as the environment says now."""
    yield monkeypatch
    monkeypatch.undo()
    forget_accounts()


def sign(patch: pytest.MonkeyPatch, letters: str) -> None:
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    permission = ContainerSasPermissions.from_string(letters)
    expiry = datetime.now(UTC) + timedelta(hours=1)
    token = generate_container_sas(AZURE_ACCOUNT, BUCKET, account_key=AZURE_KEY, permission=permission, expiry=expiry)
    patch.delenv("AZURE_STORAGE_KEY", raising=False)
    patch.setenv("AZURE_STORAGE_SAS_TOKEN", token)
    forget_accounts()


def test_the_letters_on_the_page_are_enough_and_the_first_change_nothing(
    tieredctl: Tieredctl, captures: Path, filled: FilledBucket, tmp_path: Path, signed_with: pytest.MonkeyPatch
) -> None:
    page = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
    sign(signed_with, LOOKING)
    cluster = planned_cluster(tieredctl, captures, filled, None, tmp_path)
    before = filled.keys()

    verified = tieredctl("verify", *cluster.store, "--log-dir", cluster.log_dir, "-o", "json")
    scanned = cluster.scan("-o", "json")
    refused = cluster.apply()
    unchanged = filled.keys() == before
    sign(signed_with, REMOVING)
    applied = cluster.apply("-o", "json")
    restored = cluster.restore("-o", "json")

    assert f"`{LOOKING}`" in page
    assert f"`{REMOVING}`" in page
    assert verified.document()["summary"]["complete"]
    assert (scanned.exit_code, refused.exit_code, unchanged) == (3, 1, True), refused.err
    assert "AuthorizationPermissionMismatch" in refused.err
    assert (applied.exit_code, applied.document()["summary"]["done"]) == (0, UNFINISHED), applied.err
    assert (restored.exit_code, set(before) <= set(filled.keys())) == (0, True)


def test_a_signature_of_the_container_is_not_told_its_settings(
    tieredctl: Tieredctl, filled: FilledBucket, signed_with: pytest.MonkeyPatch
) -> None:
    sign(signed_with, LOOKING)
    endpoint = filled.bucket.options["endpoint"]

    outcome = tieredctl(
        *("doctor", "store", "--store", f"az://{BUCKET}", "--store-option", f"endpoint={endpoint}", "-o", "json")
    )

    unknown = {item["evidence"].get("question") for item in outcome.document()["items"]}
    assert (outcome.exit_code, {"container", "soft delete"} <= unknown) == (5, True), outcome.out
