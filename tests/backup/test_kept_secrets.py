"""A set's secrets, encrypted to a key: they come back with it, stay closed without it, and are nowhere in the clear."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backup.captured_sets import CapturedSets, captured_state
from tests.backup.key_files import KeyFiles, key_files
from tests.cli.command_line import Outcome, Tieredctl
from tieredctl.errors import ExitCode
from tieredctl.formats.kraft_snapshot import read_kraft_snapshot
from tieredctl.kraft.difference import changes
from tieredctl.kraft.image import BROKER_RESOURCE, METADATA_VERSION, TOPIC_RESOURCE, ClusterImage
from tieredctl.kraft.replay import MetadataReplay
from tieredctl.ops.backup.cluster_state import ClusterState, read_cluster_state
from tieredctl.ops.backup.manifests import CLUSTER_FILE, SECRETS_FILE
from tieredctl.ops.backup.sets import ClusterSets
from tieredctl.process import redaction
from tieredctl.process.crash_file import crash_text
from tieredctl.storage.registry import open_writable_store

SALT, STORED, SERVER = b"salt-of-alice", b"stored-key-of-alice", b"server-key-of-alice"
KEYSTORE_PASSWORD, PLUGIN_VALUE, TOPIC_TOKEN = "keystore-word", "plugin-word", "topic-token-word"
IN_THE_CLEAR = (SALT, STORED, SERVER, *map(str.encode, (KEYSTORE_PASSWORD, PLUGIN_VALUE, TOPIC_TOKEN)))
TOPIC, OTHER = "orders7", "payments7"


def image_of_secrets() -> ClusterImage:
    credential = {"Name": "alice", "Mechanism": 2, "Salt": SALT, "StoredKey": STORED, "ServerKey": SERVER}
    token = {
        "Owner": "User:alice",
        "Requester": "User:alice",
        "Renewers": ["User:bob"],
        "IssueTimestamp": 1,
        "MaxTimestamp": 3,
        "ExpirationTimestamp": 2,
        "TokenId": "token-1",
    }
    return ClusterImage(
        credentials={(2, "alice"): credential | {"Iterations": 8192}},
        tokens={"token-1": token},
        configs={
            (BROKER_RESOURCE, "1"): {"ssl.keystore.password": KEYSTORE_PASSWORD, "plugin.of.ours": PLUGIN_VALUE},
            (TOPIC_RESOURCE, TOPIC): {"some.token": TOPIC_TOKEN},
        },
    )


@pytest.fixture
def keys(tmp_path: Path) -> KeyFiles:
    return key_files(tmp_path, 0)


@pytest.fixture
def secret_sets(sets: CapturedSets, keys: KeyFiles) -> CapturedSets:
    """Set 3 has encrypted secrets, those before it none."""
    sets.recipients, sets.secrets = [keys.public], image_of_secrets()
    sets.add()
    return sets


def known(sets: CapturedSets) -> ClusterSets[Any]:
    return ClusterSets(open_writable_store(f"file:{sets.folder}", {}), sets.cluster_id)


def restored(tieredctl: Tieredctl, sets: CapturedSets, node: Path, *more: str | Path) -> Outcome:
    return tieredctl("restore", "apply", *sets.words(f"1={node}"), *sets.confirmed, "-o", "json", *more)


def image_of(node: Path) -> ClusterImage:
    (checkpoint,) = (node / "__cluster_metadata-0").iterdir()
    data, replay = checkpoint.read_bytes(), MetadataReplay()
    replay.load_snapshot(read_kraft_snapshot([data], len(data)), 1)
    return replay.image


def secrets_file(sets: CapturedSets, number: int) -> Path:
    manifest = known(sets).read(number).manifest
    return sets.folder / known(sets).file_key(manifest, SECRETS_FILE)


def with_checksum(document: dict[str, Any]) -> bytes:
    document.pop("sha256")
    body = json.dumps(document, indent=1).encode()
    return json.dumps(document | {"sha256": sha256(body).hexdigest()}, indent=1).encode()


def put_in(sets: CapturedSets, number: int, data: bytes) -> None:
    """As whoever may write all of the bucket can: with a manifest that fits."""
    secrets_file(sets, number).write_bytes(data)
    manifest = sets.folder / known(sets).manifest_key(number)
    document = json.loads(manifest.read_bytes())
    (file,) = (one for one in document["files"] if one["name"] == SECRETS_FILE)
    file |= {"size": len(data), "sha256": sha256(data).hexdigest()}
    manifest.write_bytes(with_checksum(document))


SETTINGS = st.sampled_from(
    ["retention.ms", "ssl.key.password", "sasl.jaas.config", "plugin.of.ours", "log.retention.ms"]
)
RESOURCES = st.tuples(st.sampled_from([BROKER_RESOURCE, TOPIC_RESOURCE, 16, 99]), st.sampled_from(["", "1", "t"]))
CONFIGS = st.dictionaries(RESOURCES, st.dictionaries(SETTINGS, st.text(max_size=9), min_size=1), max_size=5)
NAMES = st.sets(st.sampled_from(["alice", "bob", "grüße"]))


@given(configs=CONFIGS, users=NAMES, tokens=NAMES)
def test_what_is_split_into_secrets_and_the_rest_is_the_same_together(
    configs: dict[tuple[int, str], dict[str, str]], users: set[str], tokens: set[str]
) -> None:
    whole, model = ClusterImage(features={METADATA_VERSION: 21}, configs=configs, end_offset=7), image_of_secrets()
    whole.credentials = {(2, one): model.credentials[2, "alice"] | {"Name": one} for one in users}
    whole.tokens = {one: model.tokens["token-1"] | {"TokenId": one} for one in tokens}
    state = ClusterState(whole, 3, {})

    rest = read_cluster_state(state.without_secrets().checkpoint(), 7)
    secrets = read_cluster_state(state.secrets().checkpoint(), 7)

    assert rest.named_secrets() == []
    assert secrets.named_secrets() == state.named_secrets()
    assert [*changes(whole, rest.with_secrets(secrets).image)] == []
    assert not any(secret in state.without_secrets().checkpoint() for secret in (SALT, STORED, SERVER))


def test_with_the_private_key_every_secret_comes_back_as_it_was(
    secret_sets: CapturedSets, keys: KeyFiles, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    node = tmp_path / "node"

    done = restored(tieredctl, secret_sets, node, "--identity", keys.private)

    assert done.exit_code == ExitCode.INCOMPLETE, done.err  # the captured events are not whole
    image, secrets = image_of(node), image_of_secrets()
    assert (image.credentials, image.tokens) == (secrets.credentials, secrets.tokens)
    for resource, settings in secrets.configs.items():
        assert image.configs[resource].items() >= settings.items()
    summary = done.document()["summary"]
    assert {(one["kind"], one["subject"]) for one in summary["secrets"]} == {
        ("credential", "alice, SCRAM-SHA-512"),
        ("delegation-token", "token-1"),
        ("config", "broker 1: ssl.keystore.password"),
        ("config", "broker 1: plugin.of.ours"),
        ("config", f"topic {TOPIC}: some.token"),
    }
    assert summary["leftOut"] == ["the value of rsm.config.storage.s3.bucket.name of brokers"]


def test_without_it_a_set_is_restored_as_one_that_left_them_out(
    secret_sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    node = tmp_path / "node"

    done = restored(tieredctl, secret_sets, node)

    assert done.exit_code == ExitCode.INCOMPLETE, done.err
    image, summary = image_of(node), done.document()["summary"]
    assert (image.credentials, image.tokens) == ({}, {})
    assert (len(summary["leftOut"]), summary["encrypted"], summary["secrets"]) == (6, 5, [])
    assert "the password of alice, SCRAM-SHA-512" in summary["leftOut"]
    assert "--identity" in done.err
    closed = read_cluster_state(known(secret_sets).read_file(known(secret_sets).read(3).manifest, CLUSTER_FILE), 1)
    assert [*changes(captured_state(secret_sets.data).image, closed.image)] == []


def test_only_the_secrets_of_restored_topics_come_back(
    secret_sets: CapturedSets, keys: KeyFiles, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    node = tmp_path / "node"

    done = restored(tieredctl, secret_sets, node, "--identity", keys.private, "--topic", OTHER)

    assert done.exit_code in (ExitCode.FINDINGS, ExitCode.INCOMPLETE), done.err
    assert (TOPIC_RESOURCE, TOPIC) not in image_of(node).configs
    assert all(TOPIC not in one["subject"] for one in done.document()["summary"]["secrets"])


def test_no_secret_is_in_the_clear_in_the_set_or_in_anything_that_is_said(
    secret_sets: CapturedSets, keys: KeyFiles, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    places, private = secret_sets.words("1"), ("--identity", keys.private)

    said = [
        tieredctl("restore", verb, *places, *private, *more)
        for verb in ("plan", "apply")
        for more in ((), ("-o", "json"))
    ]
    said.append(restored(tieredctl, secret_sets, tmp_path / "node", *private))

    files = [path.read_bytes() for path in secret_sets.files()]
    for text in [*files, *(one.out.encode() + one.err.encode() for one in said)]:
        for secret in IN_THE_CLEAR:
            assert secret not in text
            assert secret.hex().encode() not in text


@pytest.mark.parametrize("verb", ["backup", "restore"])
def test_no_secret_is_in_a_crash_file(
    verb: str,
    secret_sets: CapturedSets,
    keys: KeyFiles,
    tmp_path: Path,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(redaction, "_known", set())

    def fail(state: ClusterState, *_: object) -> None:
        raise RuntimeError(repr(state.image.configs))

    if verb == "restore":
        monkeypatch.setattr("tieredctl.wiring.restore.restored_state", fail)
        failed = restored(tieredctl, secret_sets, tmp_path / "node", "--identity", keys.private)
        (file,) = (tmp_path / "state").rglob("*.txt")
        assert failed.exit_code == ExitCode.FAILURE
        text, mode = file.read_text() + failed.err, S_IMODE(file.stat().st_mode)
        assert mode == 0o600
    else:
        secret_sets.add()
        text = crash_text(RuntimeError(repr(image_of_secrets().configs)), ["tieredctl", "backup", "run"])

    assert "RuntimeError" in text
    assert not [secret for secret in (KEYSTORE_PASSWORD, PLUGIN_VALUE, TOPIC_TOKEN) if secret in text]


def test_restored_secrets_are_readable_by_their_user_alone(
    secret_sets: CapturedSets, keys: KeyFiles, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    node = tmp_path / "node"
    restored(tieredctl, secret_sets, node, "--identity", keys.private)

    holding = [
        path
        for path in node.rglob("*")
        if path.is_file() and any(secret in path.read_bytes() for secret in IN_THE_CLEAR)
    ]

    assert [S_IMODE(path.stat().st_mode) for path in holding] == [0o600]


def altered(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def cut(data: bytes) -> bytes:
    return data[:-20]


def nothing(data: bytes) -> bytes:
    return data[:0]


@pytest.mark.parametrize("damage", [altered, cut, nothing])
@pytest.mark.parametrize("is_forged", [False, True])
def test_altered_secrets_are_refused_and_no_node_is_begun(
    damage: Callable[[bytes], bytes],
    is_forged: bool,
    secret_sets: CapturedSets,
    keys: KeyFiles,
    tmp_path: Path,
    tieredctl: Tieredctl,
) -> None:
    data = damage(secrets_file(secret_sets, 3).read_bytes())
    put_in(secret_sets, 3, data) if is_forged else secrets_file(secret_sets, 3).write_bytes(data)

    refused = restored(tieredctl, secret_sets, tmp_path / "node", "--identity", keys.private)
    verified = tieredctl("backup", "verify", "--from", f"file:{secret_sets.folder}")

    assert refused.exit_code == ExitCode.CORRUPTION, refused.err
    assert not (tmp_path / "node").exists()
    assert verified.exit_code == (ExitCode.CLEAN if is_forged else ExitCode.CORRUPTION)


def test_damaged_secrets_keep_nothing_else_from_coming_back(
    secret_sets: CapturedSets, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    secrets_file(secret_sets, 3).unlink()

    done = restored(tieredctl, secret_sets, tmp_path / "node")

    assert done.exit_code == ExitCode.INCOMPLETE, done.err  # the captured events are not whole
    assert (tmp_path / "node/meta.properties").exists()


def test_another_sets_secrets_are_refused(
    secret_sets: CapturedSets, keys: KeyFiles, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    secret_sets.add()
    put_in(secret_sets, 4, secrets_file(secret_sets, 3).read_bytes())

    refused = restored(tieredctl, secret_sets, tmp_path / "node", "--identity", keys.private)

    assert refused.exit_code == ExitCode.CORRUPTION, refused.err
    assert not (tmp_path / "node").exists()


def test_a_manifest_that_names_other_secrets_is_refused(
    secret_sets: CapturedSets, keys: KeyFiles, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    manifest = secret_sets.folder / known(secret_sets).manifest_key(3)
    document = json.loads(manifest.read_bytes())
    document["encrypted"].pop()
    manifest.write_bytes(with_checksum(document))

    refused = restored(tieredctl, secret_sets, tmp_path / "node", "--identity", keys.private)

    assert (refused.exit_code, (tmp_path / "node").exists()) == (ExitCode.CORRUPTION, False), refused.err


def test_a_wrong_private_key_is_refused_and_any_of_several_right_ones_is_taken(
    secret_sets: CapturedSets, keys: KeyFiles, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    second = key_files(tmp_path, 1)

    refused = restored(tieredctl, secret_sets, tmp_path / "node", "--identity", second.private)

    assert (refused.exit_code, (tmp_path / "node").exists()) == (ExitCode.CORRUPTION, False), refused.err
    secret_sets.recipients = [keys.public, second.public]
    secret_sets.add()
    for place, one in enumerate((keys, second)):
        done = restored(tieredctl, secret_sets, tmp_path / f"node-{place}", "--identity", one.private)
        assert done.exit_code == ExitCode.INCOMPLETE, done.err
        assert image_of(tmp_path / f"node-{place}").credentials == image_of_secrets().credentials


def test_a_private_key_for_a_set_without_encrypted_secrets_is_a_wrong_command(
    sets: CapturedSets, keys: KeyFiles, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    refused = restored(tieredctl, sets, tmp_path / "node", "--identity", keys.private)

    assert (refused.exit_code, (tmp_path / "node").exists()) == (ExitCode.USAGE, False), refused.err


def test_a_node_that_was_restored_without_secrets_is_not_taken_for_one_with_them(
    secret_sets: CapturedSets, keys: KeyFiles, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    node = tmp_path / "node"
    restored(tieredctl, secret_sets, node)

    refused = restored(tieredctl, secret_sets, node, "--identity", keys.private)
    shutil.rmtree(node)
    twice = [restored(tieredctl, secret_sets, node, "--identity", keys.private) for _ in range(2)]

    assert refused.exit_code == ExitCode.FAILURE, refused.err
    assert [one.exit_code for one in twice] == [ExitCode.INCOMPLETE] * 2, twice[1].err


def test_verifying_without_the_private_key_says_that_checksums_alone_were_checked(
    secret_sets: CapturedSets, tieredctl: Tieredctl
) -> None:
    verified = tieredctl("backup", "verify", "--from", f"file:{secret_sets.folder}", "-o", "json")

    assert verified.exit_code == ExitCode.CLEAN
    assert verified.document()["summary"]["secretsUnopened"] == 1
    assert "checksums alone" in verified.err


def test_verifying_with_the_private_key_opens_all_secrets_and_says_of_which_it_does_not(
    secret_sets: CapturedSets, keys: KeyFiles, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    other = key_files(tmp_path, 1)
    secret_sets.recipients = [other.public, keys.public]
    secret_sets.add()
    verify = ("backup", "verify", "--from", f"file:{secret_sets.folder}", "-o", "json", "--identity")

    by_one_of_both, by_one = (tieredctl(*verify, one.private) for one in (keys, other))

    assert (by_one_of_both.exit_code, by_one_of_both.document()["summary"]["secretsUnopened"]) == (ExitCode.CLEAN, 0)
    (found,) = by_one.document()["items"]
    assert (by_one.exit_code, found["code"]) == (ExitCode.INCOMPLETE, "backup-incomplete"), by_one.err
    assert by_one.document()["summary"]["secretsUnopened"] == 1
