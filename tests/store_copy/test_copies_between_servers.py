"""`store copy` and `store compare` by the command line: a captured cluster's store goes from a folder through S3,
Google Cloud Storage and Azure to a folder, and is proven at each place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from shutil import copytree, rmtree
from unittest.mock import Mock

import pytest

from tests.cli.command_line import Outcome, this_process
from tests.rigs.buckets import BUCKET, AzureContainer, Bucket, GcsBucket, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Rule
from tests.rigs.killed_runs import killed_runs
from tests.rigs.lies import one_bit_flipped, stored_altered
from tests.rigs.object_servers import ObjectServer
from tests.rigs.stopped_process import INT, Moment, pasted, run_until
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.store_copy.copying import CopiedObject, CopyResult, ObjectCopier
from tieredctl.ports.object_store import StoredObject
from tieredctl.wiring.store_copy import StoreCopying

LARGE = "large/00000000000000000000.log"


def confirmed(cluster_id: str) -> tuple[str, ...]:
    return ("--apply", "--yes", "--cluster-id", cluster_id)


CONFIRMED = confirmed("preTTRqnQOeby9xOnCMfyA")


def files(folder: Path) -> dict[str, bytes]:
    """What is in a folder, but tieredctl's own."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".tieredctl" not in path.parts
    }


class Place:
    """A store, and the words that name it."""

    def __init__(self, url: str, options: dict[str, str] | None = None) -> None:
        self.url = url
        self.options = options or {}

    def words(self, option: str) -> list[str]:
        settings = [f"{name}={value}" for name, value in self.options.items()]
        return [f"--{option}", self.url, *(word for one in settings for word in (f"--{option}-option", one))]


def at(bucket: Bucket, prefix: str) -> Place:
    return Place(f"{bucket.scheme}://{BUCKET}/{prefix}", dict(bucket.options))


def command(verb: str, source: Place, to: Place, *more: str | Path) -> Outcome:
    return this_process("store", verb, *source.words("store"), *to.words("to"), *more, "-o", "json")


@pytest.fixture
def folder(captures: Path, tmp_path: Path) -> Path:
    """A captured cluster's store."""
    return copytree(captures / "kafka-4.3.1/remote/kafka-tiered-storage", tmp_path / "source/kafka-tiered-storage")


@pytest.fixture
def metadata(captures: Path) -> Sequence[str | Path]:
    return ("--log-dir", captures / "kafka-4.3.1/data")


@pytest.mark.integration
def test_from_place_to_place_and_back(
    captures: Path, tmp_path: Path, versitygw: ObjectServer, fake_gcs_server: ObjectServer, azurite: ObjectServer
) -> None:
    folder, back = copytree(captures / "aiven-plain-4.3.1/bucket", tmp_path / "bucket"), tmp_path / "back"
    back.mkdir()
    (folder / "large").mkdir()
    (folder / LARGE).write_bytes(bytes(range(256)) * (1 << 16) + b"and a part that is not whole")
    (folder / "empty").touch()
    before, metadata = files(folder), ("--log-dir", captures / "aiven-plain-4.3.1/data")
    places = [
        Place(f"file:{folder}"),
        at(S3Bucket(versitygw.endpoint), "copied-s3"),
        at(GcsBucket(fake_gcs_server.endpoint), "copied-gs"),
        at(AzureContainer(azurite.endpoint), "copied-az"),
        Place(f"file:{back}"),
    ]

    for source, to in pairwise(places):
        done = command("copy", source, to, *metadata, *confirmed("Sf-gRTWSQf2k17pohiorEQ"))
        assert done.exit_code == 0, done.err
        assert done.document()["summary"]["done"] == len(before)
    for source, to in (places[1:3], places[3:]):
        compared = command("compare", source, to, *metadata)

        assert compared.exit_code == 0, compared.err
        assert {one["mark"] for one in compared.document()["items"]} == {"="}
        assert compared.document()["summary"]["same"] == len(before)
    assert (files(back), files(folder)) == (before, before)


def test_what_the_metadata_promises_is_copied_first_and_oldest_first(
    folder: Path, tmp_path: Path, metadata: Sequence[str | Path]
) -> None:
    (folder / "0-not-promised").write_bytes(b"1")
    (tmp_path / "to").mkdir()
    to = Place(f"file:{tmp_path / 'to'}")

    planned = command("copy", Place(f"file:{folder}"), to, *metadata)

    keys = [one["key"] for one in planned.document()["items"]]
    assert planned.exit_code == 3
    assert set(keys) == set(files(folder))
    assert keys.index("0-not-promised") > max(keys.index(key) for key in keys if key.startswith("orders7-0-"))
    assert files(tmp_path / "to") == {}


def test_a_promised_object_that_is_missing_or_short_is_a_loss_on_either_side(
    folder: Path, tmp_path: Path, metadata: Sequence[str | Path]
) -> None:
    other = copytree(folder, tmp_path / "other")
    log = next(key for key in files(folder) if key.startswith("orders7-0-") and key.endswith(".log"))
    stores = Place(f"file:{folder}"), Place(f"file:{other}")
    assert command("compare", *stores, *metadata).exit_code == 0

    (other / log).write_bytes((other / log).read_bytes()[:-1])
    short = command("compare", *stores, *metadata)
    assert (short.exit_code, short.document()["summary"]["different"]) == (4, 1)
    (folder / ".tieredctl").mkdir()
    (folder / ".tieredctl/own").touch()
    copied = command("copy", *stores, *metadata, *CONFIRMED)
    assert (copied.exit_code, copied.document()["summary"]["done"]) == (4, 0), "also where nothing is to be copied"
    assert f"Left out: tieredctl's own objects below .tieredctl/ in {stores[0].url}." in copied.err
    (other / log).unlink()
    missing = command("compare", *stores, *metadata)
    assert (missing.exit_code, missing.document()["summary"]["onlyInSource"]) == (4, 1)
    assert command("compare", stores[1], stores[0], *metadata).exit_code == 4
    assert command("compare", *stores).exit_code == 3, "nobody promised it"


def test_a_destination_with_nothing_of_it_is_a_loss(
    folder: Path, tmp_path: Path, metadata: Sequence[str | Path]
) -> None:
    (tmp_path / "empty").mkdir()

    compared = command("compare", Place(f"file:{folder}"), Place(f"file:{tmp_path / 'empty'}"), *metadata)

    assert (compared.exit_code, compared.document()["summary"]["onlyInSource"]) == (4, len(files(folder)))


def test_where_nothing_could_be_copied_the_destination_has_nothing_of_it(
    folder: Path, tmp_path: Path, metadata: Sequence[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(_copier: ObjectCopier, stored: StoredObject) -> CopiedObject:
        return replace(CopiedObject.planned(stored), result=CopyResult.FAILED.value, reason="It is archived.")

    monkeypatch.setattr(ObjectCopier, "copy", failed)
    (tmp_path / "empty").mkdir()

    copied = command("copy", Place(f"file:{folder}"), Place(f"file:{tmp_path / 'empty'}"), *metadata, *CONFIRMED)

    summary = copied.document()["summary"]
    assert (copied.exit_code, summary["failed"], summary["isWhole"]) == (4, len(files(folder)), False), copied.err
    assert "The destination holds nothing that the metadata promises" in copied.err


def test_what_was_copied_is_told_though_the_closing_look_at_it_fails(
    folder: Path, tmp_path: Path, metadata: Sequence[str | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = TieredctlError(ErrorCode.STORE_UNREACHABLE, "It does not answer.")
    monkeypatch.setattr(StoreCopying, "look_at_destination", Mock(side_effect=silent))
    (tmp_path / "empty").mkdir()

    copied = command("copy", Place(f"file:{folder}"), Place(f"file:{tmp_path / 'empty'}"), *metadata, *CONFIRMED)

    summary = copied.document()["summary"]
    assert (summary["done"], summary["stopped"]) == (len(files(folder)), "store-unreachable")
    assert (copied.exit_code, "It does not answer." in copied.err) == (ErrorCode.STORE_UNREACHABLE.exit_code, True)


def test_a_store_is_not_copied_into_itself_or_its_like(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    (folder / "within").mkdir()
    before = files(folder)

    for other in (folder, folder / "within", folder.parent, tmp_path / "link", tmp_path / "link/within"):
        for verb in ("compare", "copy"):
            refused = command(verb, Place(f"file:{folder}"), Place(f"file:{other}"))
            assert refused.exit_code == 2, (verb, other)
    assert files(folder) == before


@pytest.mark.integration
def test_a_store_by_another_name_of_its_server_is_known_by_its_lease(versitygw: ObjectServer) -> None:
    bucket = S3Bucket(versitygw.endpoint)
    bucket.put("alias/a", b"1")
    below = Place(
        f"s3://{BUCKET}/alias/below",
        dict(bucket.options) | {"endpoint": versitygw.endpoint.replace("127.0.0.1", "localhost")},
    )

    refused = command("copy", at(bucket, "alias"), below, *CONFIRMED)

    assert refused.exit_code == 2, refused.err
    assert "two names" in refused.err


def test_nothing_is_copied_without_confirmation(folder: Path, tmp_path: Path, metadata: Sequence[str | Path]) -> None:
    (tmp_path / "to").mkdir()
    stores = Place(f"file:{folder}"), Place(f"file:{tmp_path / 'to'}")

    for words in ((), ("--apply",), ("--apply", "--yes"), (*CONFIRMED, "--dry-run")):
        command("copy", *stores, *metadata, *words)
        assert files(tmp_path / "to") == {}
    another = ("--apply", "--yes", "--cluster-id", "Some1ElsesClusterIdAAA")
    assert command("copy", *stores, *metadata, *another).exit_code == 2
    assert files(tmp_path / "to") == {}


@pytest.mark.integration
def test_a_server_that_stores_other_bytes_than_it_is_sent_is_found_out(folder: Path, moto: ObjectServer) -> None:
    small = folder / "small"
    small.mkdir()
    (small / "a").write_bytes(b"1234")
    (small / "b").write_bytes(b"5678")
    bucket = S3Bucket(moto.endpoint)
    with FaultyProxy(moto.endpoint) as proxy:
        rule = Rule(stored_altered(one_bit_flipped), "PUT", "/lied/a")
        proxy.rules.append(rule)
        to = Place(at(bucket, "lied").url, dict(bucket.options) | {"endpoint": proxy.endpoint})

        done = command("copy", Place(f"file:{small}"), to, *CONFIRMED)

    results = {(one["key"], one["result"]) for one in done.document()["items"]}
    assert (done.exit_code, rule.met > 0) == (5, True), done.err
    assert results == {("a", "unproven"), ("b", "copied")}


def test_interrupted_it_says_how_to_go_on(folder: Path, tmp_path: Path) -> None:
    source = next(folder.glob("orders7-0-*"))
    to, before = tmp_path / "to", files(source)
    to.mkdir()
    words = ["store", "copy", "--store", f"file:{source}", "--to", f"file:{to}", *CONFIRMED]

    ended = run_until(Moment(r"link \d{20}", 3), INT, to, words)

    assert (ended.exit_code, "Traceback" in ended.err) == (130, False), ended.err
    assert len(files(to)) < len(before)
    assert pasted(ended).exit_code == 0
    assert files(to) == before


def test_killed_at_any_moment_it_goes_on_and_leaves_nothing_half_done(folder: Path, tmp_path: Path) -> None:
    source = next(folder.glob("orders7-0-*"))
    to, before = tmp_path / "to", files(source)
    words = ["store", "copy", "--store", f"file:{source}", "--to", f"file:{to}", *CONFIRMED]

    for moment in killed_runs(words, to, partial(emptied, to), partial(files, to), [source]):
        assert files(to).items() <= before.items(), moment
    assert files(to) == before


def emptied(folder: Path) -> None:
    rmtree(folder, ignore_errors=True)
    folder.mkdir()
