"""Copies whose data keys are wrapped for another key pair: the new one opens every segment, the old one none, and the
segments themselves are the same byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from Crypto.PublicKey import RSA

from tests.cli.command_line import Outcome, this_process
from tests.faults.aiven_storage_manager import AivenStorageManager, private_key
from tests.rigs.buckets import S3Bucket
from tests.rigs.driven_brokers import jars_of
from tests.rigs.java_program import run_java_program
from tests.rigs.killed_runs import killed_runs
from tests.rigs.object_servers import ObjectServer
from tests.store_copy.test_copies_between_servers import Place, at, command, confirmed, emptied, files
from tieredctl.layouts.registry import layout_in
from tieredctl.ports.layout import Part
from tieredctl.storage.file import FileStore

MANIFEST = ".rsm-manifest"
CAPTURE = "aiven-zstd-encrypted-4.3.1"


@cache
def pem(bits: int = 2_048, number: int = 0) -> str:
    """A private key; the same for the same arguments."""
    del number
    return RSA.generate(bits).export_key(pkcs=8).decode()


@pytest.fixture
def key(tmp_path: Path) -> Callable[..., Path]:
    """Writes a private key into a file."""

    def written(*texts: str, name: str = "new.pem") -> Path:
        (tmp_path / name).write_text("\n".join(texts or (pem(),)))
        return tmp_path / name

    return written


@pytest.fixture
def capture(captures: Path) -> Path:
    return captures / CAPTURE


@pytest.fixture
def source(capture: Path, tmp_path: Path) -> Path:
    return copytree(capture / "bucket", tmp_path / "source")


@pytest.fixture
def to(tmp_path: Path) -> Place:
    (tmp_path / "to").mkdir()
    return Place(f"file:{tmp_path / 'to'}")


def with_old(capture: Path) -> Sequence[str | Path]:
    return ("--layout-option", f"private-key={capture / 'keys/private.pem'}")


def for_new(new: Path, key_id: str = "key2") -> Sequence[str]:
    options = f"private-key={new}", f"key-pair-id={key_id}"
    return ("--rewrap", *(word for one in options for word in ("--to-layout-option", one)))


def applied(capture: Path) -> Sequence[str]:
    described = json.loads((capture / "capture.json").read_text())
    return confirmed(described["cluster_id"])


def verified(place: Place, capture: Path, key: Path, *more: str) -> Outcome:
    private_key = ("--layout-option", f"private-key={key}")
    metadata: Sequence[str | Path] = ("--log-dir", capture / "data", *private_key, *more)
    return this_process("verify", "--level", "full", *place.words("store"), *metadata, "-o", "json")


def found(outcome: Outcome) -> list[tuple[str, str | None]]:
    """What `verify` found, without the name of the store."""
    return sorted((one["code"], one["evidence"].get("segmentId")) for one in outcome.document()["items"])


@pytest.mark.integration
def test_the_new_key_opens_all_and_the_old_one_nothing(
    capture: Path, source: Path, key: Callable[..., Path], versitygw: ObjectServer
) -> None:
    topic = ("--topic", "keep32")
    for folder_of_another in set(source.glob("tiered/*")) - set(source.glob("tiered/keep32-*")):
        rmtree(folder_of_another)
    bucket, before, new, old = S3Bucket(versitygw.endpoint), files(source), key(), capture / "keys/private.pem"
    folder, plain, again, other = (
        Place(f"file:{source}"),
        *(at(bucket, f"rewrapped-{name}") for name in ("plain", "again", "other")),
    )
    words = (*with_old(capture), *for_new(new))
    assert command("copy", folder, plain, *applied(capture)).exit_code == 0
    of_source = verified(folder, capture, old, *topic)

    for one, to in ((folder, other), (plain, again)):
        done = command("copy", one, to, *words, "--log-dir", capture / "data", *applied(capture))
        compared = command("compare", one, to, *words)

        assert done.document()["summary"]["done"] == len(before), done.err
        assert compared.exit_code == 0, compared.err
        assert {row["mark"] for row in compared.document()["items"]} == {"="}
        of_copy = verified(to, capture, new, *topic)
        assert (of_copy.exit_code, found(of_copy)) == (of_source.exit_code, found(of_source))
        assert of_copy.document()["summary"]["bytesRead"] == of_source.document()["summary"]["bytesRead"] > 0
        unreadable = verified(to, capture, old, *topic)
        assert "private-key" in unreadable.out + unreadable.err
        assert unreadable.exit_code != of_source.exit_code
    assert files(source) == before


def test_only_the_wrapped_key_of_a_manifest_changes(
    capture: Path, source: Path, to: Place, key: Callable[..., Path]
) -> None:
    new = key()
    done = command("copy", Place(f"file:{source}"), to, *with_old(capture), *for_new(new), *applied(capture))
    assert done.exit_code == 0, done.err

    before, after = files(source), files(Path(to.url.removeprefix("file:")))
    assert before.keys() == after.keys()
    manifests = [name for name in before if name.endswith(MANIFEST)]
    assert len(manifests) > 20
    for name, data in before.items():
        if name not in manifests:
            assert after[name] == data
            continue
        wrapped = [json.loads(one)["encryption"]["dataKey"] for one in (data, after[name])]
        assert [text.partition(":")[0] for text in wrapped] == ["key1", "key2"]
        assert after[name].replace(wrapped[1].encode(), wrapped[0].encode()) == data
    assert "rsm.config.encryption.key.pair.id=key2" in done.err
    assert "rsm.config.encryption.key.pairs.key2.private.key.file" in done.err


@pytest.mark.integration
@pytest.mark.parametrize("key_id", ["key2", "k"])
def test_java_opens_what_was_wrapped(
    key_id: str, capture: Path, source: Path, to: Place, key: Callable[..., Path]
) -> None:
    new, old = key(), capture / "keys/private.pem"
    done = command("copy", Place(f"file:{source}"), to, *with_old(capture), *for_new(new, key_id), *applied(capture))
    assert done.exit_code == 0, done.err

    places = map(str, (old, source, new, to.url.removeprefix("file:")))
    counted = run_java_program(jars_of("4.3.1"), "DataKeyOracle", *places)

    manifests = sum(name.endswith(MANIFEST) for name in files(source))
    assert counted == {"manifests": manifests, "sameKeys": manifests, "sameFields": manifests}


def test_a_second_run_finds_all_the_same_and_a_comparison_without_the_keys_does_not(
    capture: Path, source: Path, to: Place, key: Callable[..., Path]
) -> None:
    place, words = Place(f"file:{source}"), (*with_old(capture), *for_new(key()))
    assert command("copy", place, to, *words, *applied(capture)).exit_code == 0
    before = files(Path(to.url.removeprefix("file:")))

    again = command("copy", place, to, *words, *applied(capture))

    assert (again.exit_code, again.document()["summary"]["done"]) == (0, 0)
    assert files(Path(to.url.removeprefix("file:"))) == before
    assert command("compare", place, to, *words).exit_code == 0
    assert command("compare", place, to).exit_code == 3
    assert command("compare", place, to, *with_old(capture), *for_new(key(), "key3")).exit_code == 3


def test_a_manifest_with_another_data_key_is_different_and_stays(
    capture: Path, source: Path, to: Place, key: Callable[..., Path]
) -> None:
    place, words = Place(f"file:{source}"), (*with_old(capture), *for_new(key()))
    manifests = [name for name in files(source) if name.endswith(MANIFEST)]
    folder = Path(to.url.removeprefix("file:"))
    assert command("copy", place, to, *words, *applied(capture)).exit_code == 0
    wrapped_before = source / manifests[0], folder / manifests[0]
    wrapped_before[1].write_bytes(wrapped_before[0].read_bytes())
    of_another = json.loads((folder / manifests[2]).read_text())["encryption"]["dataKey"]
    theirs = json.loads((folder / manifests[1]).read_text())
    theirs["encryption"]["dataKey"] = of_another
    (folder / manifests[1]).write_text(json.dumps(theirs, separators=(",", ":")))
    before = files(folder)

    compared = command("compare", place, to, *words)
    copied_again = command("copy", place, to, *words, *applied(capture))

    different = [row["key"] for row in compared.document()["items"] if row["mark"] == "*"]
    assert (compared.exit_code, different) == (3, sorted(manifests[:2]))
    assert (copied_again.exit_code, files(folder)) == (3, before)


def test_killed_at_any_moment_it_goes_on_and_replaces_nothing(
    capture: Path, source: Path, to: Place, key: Callable[..., Path]
) -> None:
    part = next(source.glob("tiered/slow32-*/0"))
    for path in sorted(part.iterdir())[30:]:
        path.unlink()
    place, before, folder = Place(f"file:{part}"), files(part), Path(to.url.removeprefix("file:"))
    rewrapped = {name for name in before if name.endswith(MANIFEST)}
    words = (*with_old(capture), *for_new(key()), "--layout", "aiven")
    copy = ["store", "copy", *place.words("store"), *to.words("to"), *words, *applied(capture)]
    left: dict[str, bytes] = {}

    def end() -> tuple[set[str], set[str]]:
        """What there is, and what of it is not as in the source. A key is never wrapped twice alike."""
        there = files(folder)
        assert left.items() <= there.items(), "nothing was replaced"
        left.clear()
        return {*there}, {name for name, data in there.items() if data != before[name]}

    for moment in killed_runs(copy, folder, partial(emptied, folder), end, [part, capture / "keys"]):
        left.update(files(folder))
        assert {name for name, data in left.items() if data != before[name]} <= rewrapped, moment
    assert end() == ({*before}, rewrapped)
    assert command("compare", place, to, *words, "--by", "content").exit_code == 0


@pytest.mark.parametrize("verb", ["copy", "compare"])
def test_what_cannot_open_or_wrap_is_refused_before_anything_is_copied(
    verb: str, capture: Path, source: Path, to: Place, key: Callable[..., Path]
) -> None:
    place, old, new = Place(f"file:{source}"), with_old(capture), key()
    another = ("--layout-option", f"private-key={key(pem(2_048, 1), name='another.pem')}")
    short, two = key(pem(1_024), name="short.pem"), key(pem(), pem(2_048, 1), name="two.pem")
    named = ("--rewrap", "--to-layout-option")
    for words, why in (
        ((*another, *for_new(new)), "it does not open"),
        (("--layout", "aiven", *for_new(new)), "there is no private key"),
        ((*old, *for_new(short)), "cannot wrap"),
        ((*old, *for_new(two)), "holds 2 private keys"),
        ((*old, "--rewrap"), "no private key of the destination"),
        ((*old, *named, "key-pair-id=key2"), "no private key of the destination"),
        ((*old, *named, f"private-key={new}"), "has no id"),
        ((*old, *for_new(new, "")), "cannot be ''"),
        ((*old, *for_new(new, "a:b")), "cannot be 'a:b'"),
        ((*old, *for_new(new)[1:]), "is for --rewrap"),
    ):
        refused = command(verb, place, to, *words, *(applied(capture) if verb == "copy" else ()))

        assert (refused.exit_code, why in refused.err) == (2, True), (words, refused.err)
        assert files(Path(to.url.removeprefix("file:"))) == {}


@pytest.fixture
def without_recorded_sizes(captures: Path, tmp_path: Path) -> Path:
    """A captured cluster whose custom metadata records no sizes, with its segments encrypted."""
    folder = copytree(captures / "aiven-plain-4.3.1", tmp_path / "cluster")
    (tmp_path / "old.pem").write_text(private_key())
    store = FileStore(str(folder / "bucket"))
    layout, manager = layout_in(store, "aiven", {}), AivenStorageManager(100_000, encryption=True)
    for stored in list(store.list()):
        segment = layout.explain(stored.key)
        if segment is not None and segment.part is Part.MANIFEST:
            reader = layout.open_segment(store, segment)
            parts = {part: reader.read(part) for part in reader.parts()}
            for part, data in manager.objects(parts).items():
                (folder / "bucket" / layout.promised_objects(segment)[part]).write_bytes(data)
    return folder


def test_manifests_grow_where_the_metadata_shows_that_nothing_records_their_sizes(
    without_recorded_sizes: Path, tmp_path: Path, to: Place, key: Callable[..., Path]
) -> None:
    place, new = Place(f"file:{without_recorded_sizes / 'bucket'}"), key(pem(3_072))
    words = ("--layout-option", f"private-key={tmp_path / 'old.pem'}", *for_new(new, "the-key-pair-of-another-region"))
    confirmation, metadata = applied(without_recorded_sizes), ("--log-dir", without_recorded_sizes / "data")
    (cut_short,) = list((without_recorded_sizes / "data").glob("__remote_log_metadata-0"))
    folder = Path(to.url.removeprefix("file:"))

    unknown = command("copy", place, to, *words, *confirmation)
    cut_short.rename(tmp_path / cut_short.name)
    incomplete = command("copy", place, to, *words, *metadata, *confirmation)
    (tmp_path / cut_short.name).rename(cut_short)

    assert [(one.exit_code, "would have" in one.err) for one in (unknown, incomplete)] == [(2, True)] * 2
    assert files(folder) == {}
    of_source = verified(place, without_recorded_sizes, tmp_path / "old.pem")
    done = command("copy", place, to, *words, *metadata, *confirmation)
    of_copy = verified(to, without_recorded_sizes, new)
    assert done.exit_code == 0, done.err
    assert (of_copy.exit_code, found(of_copy)) == (of_source.exit_code, found(of_source))
    assert command("compare", place, to, *words, *metadata).exit_code == 0


def test_manifests_do_not_grow_where_custom_metadata_records_their_sizes(
    capture: Path, source: Path, to: Place, key: Callable[..., Path]
) -> None:
    place, new = Place(f"file:{source}"), key()
    for words in (for_new(new, "a-longer-id"), for_new(key(pem(3_072), name="long.pem"))):
        for metadata in ((), ("--log-dir", capture / "data")):
            refused = command("copy", place, to, *with_old(capture), *words, *metadata, *applied(capture))

            assert (refused.exit_code, "REMOTE_SIZE" in refused.err) == (2, True), refused.err
    assert files(Path(to.url.removeprefix("file:"))) == {}
