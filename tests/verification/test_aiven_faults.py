"""Faults in the objects of Aiven's storage manager: each is found where it is, and no key is taken for damage."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from Crypto.PublicKey import RSA

from tests.cli.command_line import Outcome
from tieredctl.cli.main import run

CHUNK_BYTES = 4_096
LEVELS = ("headers", "full")
MANIFEST = ".rsm-manifest"
Change = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Copy:
    """A capture whose objects may be replaced, but not written to: they are links."""

    folder: Path
    key: Path | None
    capsys: pytest.CaptureFixture[str]
    topic: str

    def object(self, suffix: str) -> Path:
        """The largest of the topic's objects of a kind, which is not the last of its partition."""
        found = (self.folder / "bucket").rglob(f"{self.topic}-*/*/*{suffix}")
        return max(sorted(found)[:-1], key=lambda path: path.stat().st_size)

    def change(self, path: Path, change: Change) -> None:
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(change(data))

    @contextmanager
    def changed(self, path: Path, change: Change) -> Iterator[None]:
        """An object with a change, which is taken back at the end."""
        data = path.read_bytes()
        self.change(path, change)
        yield
        path.write_bytes(data)

    def verify(self, level: str = "full", key: Path | None = None) -> Outcome:
        options = ["--layout-option", f"private-key={key or self.key}"] if key or self.key else []
        return self.run("verify", "--level", level, *self.metadata, "--topic", self.topic, *options)

    @property
    def metadata(self) -> tuple[str | Path, ...]:
        """Copies that never ended are none of the faults."""
        return ("--log-dir", self.folder / "data", "--older-than", "99999d")

    def run(self, *words: str | Path) -> Outcome:
        exit_code = run([*map(str, words), "--store", f"file:{self.folder / 'bucket'}", "-o", "json"])
        said = self.capsys.readouterr()
        assert "Traceback" not in said.err
        return Outcome(exit_code, said.out, said.err)

    def finding(self, level: str = "full") -> dict[str, Any]:
        return self.verify(level).finding(exit_code=4)


def copied(capture: Path, folder: Path, capsys: pytest.CaptureFixture[str], topic: str) -> Copy:
    (folder / "data").symlink_to(capture / "data")
    shutil.copytree(capture / "bucket", folder / "bucket", copy_function=os.link)
    key = capture / "keys" / "private.pem"
    return Copy(folder, key if key.exists() else None, capsys, topic)


@pytest.fixture
def encrypted(captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Copy:
    """Compressed and encrypted, with segments of a MiB."""
    return copied(captures / "aiven-zstd-encrypted-4.3.1", tmp_path, capsys, "slow32")


@pytest.fixture
def plain(captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Copy:
    return copied(captures / "aiven-plain-4.3.1", tmp_path, capsys, "slow31")


@pytest.fixture(params=["encrypted", "plain"])
def cluster(request: pytest.FixtureRequest) -> Copy:
    copy: Copy = request.getfixturevalue(request.param)
    return copy


def flipped(position: int) -> Change:
    return lambda data: data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def evidence(finding: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = finding["evidence"]
    return found


def key_of(cluster: Copy, path: Path) -> str:
    return str(path.relative_to(cluster.folder / "bucket"))


def test_nothing_is_found_before_anything_is_broken(cluster: Copy) -> None:
    for level in ("listing", *LEVELS):
        outcome = cluster.verify(level)

        assert (outcome.exit_code, outcome.document()["items"]) == (0, []), level


def test_a_flipped_byte_of_an_encrypted_log_puts_the_offsets_of_its_chunk_at_risk(encrypted: Copy) -> None:
    log = encrypted.object(".log")
    size = log.stat().st_size
    for part in (0.0, 0.3, 0.5, 0.9, 1.0):
        position = min(int(size * part), size - 1)
        with encrypted.changed(log, flipped(position)):
            finding = encrypted.finding()

        found = evidence(finding)
        assert (finding["code"], found["key"]) == ("batch-corrupt", key_of(encrypted, log)), part
        first, last = found["storedBytes"]
        assert first <= position <= last, part
        assert last - first < 2 * CHUNK_BYTES, part
        assert 0 <= found["position"] < 1_100_000, part
        first_offset, last_offset = found["offsets"]
        assert 0 <= last_offset - first_offset < 20, part
        assert f"bytes {first} to {last} of the object were altered" in finding["message"], part


def test_several_damaged_chunks_in_a_row_are_one_finding(encrypted: Copy) -> None:
    log = encrypted.object(".log")
    encrypted.change(log, lambda data: data[:2_000] + bytes(3_000) + data[5_000:])

    finding = encrypted.finding()

    first, last = evidence(finding)["storedBytes"]
    assert finding["code"] == "batch-corrupt"
    assert first <= 2_000
    assert last >= 4_999


def test_damage_in_two_places_is_two_findings(encrypted: Copy) -> None:
    log = encrypted.object(".log")
    encrypted.change(log, lambda data: flipped(10_000)(flipped(2_000)(data)))

    outcome = encrypted.verify()

    assert outcome.exit_code == 4
    assert [item["code"] for item in outcome.document()["items"]] == ["batch-corrupt"] * 2


def test_a_damaged_first_chunk_is_found_at_once(encrypted: Copy) -> None:
    encrypted.change(encrypted.object(".log"), flipped(50))

    for level in LEVELS:
        finding = encrypted.finding(level)

        assert finding["code"] == "batch-corrupt", level
        assert (evidence(finding)["position"], evidence(finding)["storedBytes"][0]) == (0, 0), level


def without_last(count: int) -> Change:
    return lambda data: data[:-count]


def first_of(count: int) -> Change:
    return lambda data: data[:count]


def longer(data: bytes) -> bytes:
    return data + b"more"


OF_EVERY_CLUSTER: list[tuple[str, Change, str]] = [
    *((".log", without_last(count), "size-mismatch") for count in (1, 3_000, 12_000)),
    (".log", longer, "size-mismatch"),
    (".indexes", longer, "index-damaged"),
]
OF_ENCRYPTED: list[tuple[str, Change, str]] = [
    *((".indexes", first_of(count), "index-damaged") for count in (0, 1, 50, 200)),
    (MANIFEST, lambda _: b"", "manifest-damaged"),
    (MANIFEST, without_last(1), "manifest-damaged"),
    (MANIFEST, lambda data: data[: len(data) // 2], "manifest-damaged"),
    (MANIFEST, lambda data: b"x" + data[1:], "manifest-damaged"),
    (MANIFEST, lambda data: data.replace(b'"version":"1"', b'"version":"7"'), "manifest-damaged"),
    (MANIFEST, lambda data: data.replace(b'"originalChunkSize":4096', b'"originalChunkSize":96'), "manifest-damaged"),
    (MANIFEST, lambda data: data.replace(b'"dataKey":"key1:', b'"dataKey":"key1:AAAA'), "manifest-damaged"),
    (MANIFEST, lambda data: data.replace(b'"aad":"', b'"aad":"AAAA'), "manifest-damaged"),
    (
        MANIFEST,
        lambda data: data.replace(b'"transformedChunks":"KLUv', b'"transformedChunks":"KLUw'),
        "manifest-damaged",
    ),
]


def test_what_is_cut_longer_or_damaged_is_one_finding(cluster: Copy) -> None:
    for number, (suffix, change, code) in enumerate([*OF_EVERY_CLUSTER, *(OF_ENCRYPTED if cluster.key else [])]):
        path = cluster.object(suffix)
        data = path.read_bytes()
        assert change(data) != data, (number, suffix)
        with cluster.changed(path, change):
            for level in LEVELS:
                case, finding = (number, suffix, level), cluster.finding(level)
                found = evidence(finding)
                assert (finding["code"], found["key"]) == (code, key_of(cluster, path)), case
                if suffix == ".indexes" or change is longer:
                    assert found["position"] == min(len(data), path.stat().st_size), case
                else:
                    assert found["offsets"][0] <= found["offsets"][1], case
                if suffix == MANIFEST:
                    assert (finding["severity"], found["part"]) == ("critical", "manifest"), case


def test_the_listing_shows_that_an_object_is_short_where_custom_metadata_has_the_size(encrypted: Copy) -> None:
    for suffix in (".log", ".indexes", MANIFEST):
        path = encrypted.object(suffix)
        with encrypted.changed(path, without_last(1)):
            finding = encrypted.finding("listing")

        assert (finding["code"], evidence(finding)["segmentId"]) == ("size-mismatch", path.stem[-22:]), suffix


def test_segments_stay_under_the_prefix_that_they_were_copied_under(encrypted: Copy) -> None:
    """As after a change of `key.prefix`: only what copies that never ended left is unreferenced, having no metadata
    that says where it is."""
    given = ("--layout-option", "key-prefix=new/", "--layout-option", f"private-key={encrypted.key}")
    for level in ("listing", *LEVELS):
        outcome = encrypted.run("verify", "--level", level, *encrypted.metadata, "--layout", "aiven", *given)

        assert outcome.exit_code == 3, level
        assert [item["code"] for item in outcome.document()["items"]] == ["object-unreferenced"] * 9, level
        assert outcome.document()["summary"]["objects"] == 387, level


def test_a_flipped_byte_of_an_encrypted_index_is_found_in_that_index(encrypted: Copy) -> None:
    indexes = encrypted.object(".indexes")
    manifest = json.loads(indexes.with_suffix(MANIFEST).read_bytes())
    codes = {
        "offset": "index-damaged",
        "timestamp": "index-damaged",
        "producerSnapshot": "producer-snapshot-damaged",
        "leaderEpoch": "leader-epoch-checkpoint-damaged",
    }
    for name, code in codes.items():
        with encrypted.changed(indexes, flipped(manifest["segmentIndexes"][name]["position"] + 3)):
            finding = encrypted.finding()

        assert (finding["code"], evidence(finding)["key"]) == (code, key_of(encrypted, indexes)), name
        assert "were altered" in finding["message"], name


def test_an_object_that_is_gone_is_one_finding(cluster: Copy) -> None:
    for suffix, part in {".log": "log", ".indexes": "indexes", MANIFEST: "manifest"}.items():
        path = cluster.object(suffix)
        data = path.read_bytes()
        path.unlink()
        for level in ("listing", *LEVELS):
            finding = cluster.finding(level)

            assert finding["code"] == "object-missing", (suffix, level)
            assert (evidence(finding)["key"], evidence(finding)["part"]) == (key_of(cluster, path), part)
        path.write_bytes(data)


def test_an_index_that_is_gone_is_not_taken_for_aborted_transactions_without_one(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = copied(captures / "aiven-zstd-encrypted-4.3.1", tmp_path, capsys, "keep32")
    with_transactions = [path for path in manifests(cluster) if b'"transaction":null' not in path.read_bytes()]
    with_transactions[0].with_suffix(".indexes").unlink()

    assert cluster.finding()["code"] == "object-missing"


def manifests(cluster: Copy) -> Iterable[Path]:
    return sorted((cluster.folder / "bucket").rglob(f"{cluster.topic}-*/*/*{MANIFEST}"))


class TestPrivateKey:
    @pytest.fixture
    def wrong_key(self, tmp_path: Path) -> Path:
        file = tmp_path / "wrong.pem"
        file.write_bytes(RSA.generate(2048).export_key(pkcs=8))
        return file

    def test_a_wrong_or_missing_key_is_a_sentence_and_no_finding(self, encrypted: Copy, wrong_key: Path) -> None:
        for level in LEVELS:
            wrong = encrypted.verify(level, key=wrong_key)
            missing = encrypted.run("verify", "--level", level, *encrypted.metadata)

            for outcome, said, told in (
                (wrong, "The private key is not that of key pair 'key1'", "--layout-option private-key=FILE"),
                (missing, "for key pair 'key1', and there is no private key.", "TIEREDCTL_AIVEN_PRIVATE_KEY"),
            ):
                assert (outcome.exit_code, outcome.out) == (2, ""), level
                sentence, hint = outcome.err.splitlines()
                assert said in sentence
                assert told in hint

    def test_the_listing_needs_no_key(self, encrypted: Copy) -> None:
        outcome = encrypted.run("verify", "--level", "listing", *encrypted.metadata, "--topic", encrypted.topic)

        assert outcome.exit_code == 0

    def test_the_key_may_be_in_the_environment(self, encrypted: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
        assert encrypted.key is not None
        monkeypatch.setenv("TIEREDCTL_AIVEN_PRIVATE_KEY", encrypted.key.read_text())

        outcome = encrypted.run("verify", *encrypted.metadata, "--topic", encrypted.topic)

        assert outcome.exit_code == 0

    def test_nothing_is_left_of_a_part_that_cannot_be_read(self, encrypted: Copy, wrong_key: Path) -> None:
        target = encrypted.folder / "log"
        segment_id = encrypted.object(".log").stem[-22:]
        options = ("--layout-option", f"private-key={wrong_key}")

        outcome = encrypted.run("remote", "read", segment_id, "--to", target, *options)

        assert outcome.exit_code == 2
        assert sorted(path.name for path in encrypted.folder.iterdir()) == ["bucket", "data", "wrong.pem"]


def test_a_part_with_damage_is_not_written(encrypted: Copy) -> None:
    log = encrypted.object(".log")
    encrypted.change(log, flipped(7_000))
    options = ("--layout-option", f"private-key={encrypted.key}")

    outcome = encrypted.run("remote", "read", log.stem[-22:], "--to", encrypted.folder / "log", *options)

    assert outcome.exit_code == 4
    assert "of the object were altered" in outcome.err
    assert sorted(path.name for path in encrypted.folder.iterdir()) == ["bucket", "data"]


def test_a_log_that_is_cut_is_not_written(cluster: Copy) -> None:
    log = cluster.object(".log")
    cluster.change(log, lambda data: data[:-1])
    options = ("--layout-option", f"private-key={cluster.key}") if cluster.key else ()

    outcome = cluster.run("remote", "read", log.stem[-22:], "--to", cluster.folder / "log", *options)

    assert outcome.exit_code == 4
    assert "the object ends" in outcome.err
    assert not (cluster.folder / "log").exists()
