"""What Aiven's plugin stored, put into a container of Azure Blob Storage: its keys are the same in every cloud."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Outcome, this_process
from tests.cli.crashed_cluster import objects_in
from tests.metadata_logs import write_log
from tests.rigs.buckets import BUCKET, AzureContainer
from tests.rigs.inventories import AZURE_MANIFEST, ROOT, azure_inventory, azure_row
from tests.rigs.object_servers import ObjectServer
from tieredctl.storage.registry import open_store

CAPTURE = "aiven-plain-4.3.1"


@pytest.fixture(scope="module")
def container(captures: Path, azurite: ObjectServer) -> AzureContainer:
    container = AzureContainer(azurite.endpoint)
    objects = objects_in(captures / CAPTURE / "bucket")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda key: container.put(ROOT + key, objects[key]), objects))
    return container


def at(container: AzureContainer) -> Sequence[str]:
    options = [word for name, value in container.options.items() for word in ("--store-option", f"{name}={value}")]
    return ("--store", f"az://{BUCKET}/{ROOT}", *options)


def in_folder(captures: Path) -> Sequence[str]:
    return ("--store", f"file:{captures / CAPTURE / 'bucket'}")


def answer(outcome: Outcome) -> tuple[int, Any]:
    """Findings by their subjects: remedies name the store, and evidence has ages."""
    told = ("code", "subject")
    items = [{name: item[name] for name in told} if "code" in item else item for item in outcome.document()["items"]]
    return outcome.exit_code, items


def test_verification_and_lost_metadata_come_to_the_same_as_in_a_folder(
    captures: Path, container: AzureContainer, tmp_path: Path
) -> None:
    for number in range(4):
        write_log(tmp_path / "forgotten", number, [])
    whole = ("--log-dir", captures / CAPTURE / "data")
    for words in (
        ("verify", "--level", "full", *whole),
        ("recover", "metadata", *whole),
        ("recover", "metadata", "--log-dir", tmp_path / "forgotten"),
    ):
        in_container = this_process(*words, *at(container), "-o", "json")
        on_disk = this_process(*words, *in_folder(captures), "-o", "json")

        assert answer(in_container) == answer(on_disk), words
        assert in_container.exit_code in {0, 3}, words


def test_an_inventory_is_as_good_as_a_listing(captures: Path, container: AzureContainer) -> None:
    store = open_store(f"az://{BUCKET}/{ROOT}", container.options)
    for name, data in azure_inventory([azure_row(stored) for stored in store.list()]).items():
        container.put(name, data)
    where = ("--log-dir", captures / CAPTURE / "data", "--min-age", "0s")
    scan: Sequence[str | Path] = ("orphans", "scan", *at(container), *where)

    by_listing = this_process(*scan, "-o", "jsonl")
    by_inventory = this_process(*scan, "--inventory", f"az://{BUCKET}/{AZURE_MANIFEST}", "-o", "jsonl")

    assert (by_inventory.exit_code, by_listing.exit_code) == (3, 3), by_inventory.err
    assert sorted(by_inventory.out.splitlines()) == sorted(by_listing.out.splitlines())


def test_an_archived_segment_is_named_and_not_called_damaged(captures: Path, container: AzureContainer) -> None:
    name = next(one for one in container.names(ROOT) if one.endswith(".log"))
    blob = container.client.get_blob_client(name)
    blob.set_standard_blob_tier("Archive")

    verified = this_process("verify", *at(container), "--log-dir", captures / CAPTURE / "data", "-o", "json")
    blob.set_standard_blob_tier("Hot")

    codes = [item["code"] for item in verified.document()["items"]]
    assert (verified.exit_code, codes.count("object-archived")) == (5, 1)
    assert set(codes) == {"object-archived", "copy-stuck"}
