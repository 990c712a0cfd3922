"""Private keys come from a file or the environment, open data keys, and are never shown."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from Crypto.PublicKey import RSA
from tieredctl_aiven import aiven_layout
from tieredctl_aiven.keys import ENVIRONMENT_VARIABLE, PrivateKeys, private_keys
from tieredctl_aiven.manifest import read_manifest

from tests.faults.aiven_storage_manager import AivenStorageManager, key_pair, private_key
from tests.refusals import refused_with
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.ports.layout import ORIGINAL_PARTS, Part

NO_KEY = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"


@pytest.fixture
def wrapped() -> bytes:
    """A data key as it stands in a manifest."""
    stored = AivenStorageManager(encryption=True).objects(dict.fromkeys(ORIGINAL_PARTS, b"data"))
    encryption = read_manifest(stored[Part.MANIFEST]).encryption
    assert encryption is not None
    return encryption.wrapped_key


def other_key() -> str:
    return RSA.generate(1024).export_key(pkcs=8).decode()


def test_keys_come_from_a_file_before_the_environment(tmp_path: Path, wrapped: bytes) -> None:
    """A file may hold the keys of before and after an exchange."""
    file, both = tmp_path / "private.pem", tmp_path / "both.pem"
    file.write_text(private_key())
    both.write_text(other_key() + "\n" + private_key())

    for name, keys in {
        "a file": private_keys(str(file)),
        "the environment": private_keys(None, {ENVIRONMENT_VARIABLE: private_key()}),
        "a file before the environment": private_keys(str(file), {ENVIRONMENT_VARIABLE: "no key"}),
        "a file of two keys": private_keys(str(both)),
    }.items():
        assert keys.unwrap(wrapped) is not None, name
    assert private_keys(None, {}) == PrivateKeys()


def test_another_key_or_what_was_not_wrapped_for_a_key_opens_nothing(wrapped: bytes) -> None:
    assert PrivateKeys((other_key(),)).unwrap(wrapped) is None
    for damaged in (b"", b"\0" * 256, b"\xff" * 256, b"x" * 255, b"x" * 257):
        assert PrivateKeys((private_key(),)).unwrap(damaged) is None, damaged


def test_what_is_not_a_private_key_is_reported_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "private.pem"
    public, locked = key_pair().public_key().export_key(), key_pair().export_key(passphrase="secret", pkcs=8)
    for data in (b"", b"hello", NO_KEY.encode(), "\0\xff".encode(), public, locked):
        file.write_bytes(data)

        with pytest.raises(TieredctlError, match="does not hold an RSA private key") as raised:
            private_keys(str(file))

        assert raised.value.exit_code is ExitCode.USAGE, data
        assert data is locked or "PEM" in raised.value.hint, data


def test_a_file_that_is_not_there_is_named_and_a_folder_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(TieredctlError, match=f"There is no private key {tmp_path}/no") as raised:
        aiven_layout({"private-key": f"{tmp_path}/no"})

    assert raised.value.code == "path-missing"
    with refused_with("private-key"):
        private_keys(str(tmp_path))


def test_no_key_is_ever_shown(tmp_path: Path, wrapped: bytes) -> None:
    file = tmp_path / "private.pem"
    file.write_text(private_key())
    layout = aiven_layout({"private-key": str(file)})
    secret = private_key().splitlines()[1]

    shown = [repr(layout), str(layout), f"{private_keys(str(file))}", json.dumps({"layout": repr(layout)})]

    assert not any(secret in text for text in shown)


def test_a_pickled_layout_holds_the_place_of_its_keys_and_reads_them_again(tmp_path: Path, wrapped: bytes) -> None:
    file = tmp_path / "private.pem"
    file.write_text(private_key())

    pickled = pickle.dumps(aiven_layout({"private-key": str(file)}))

    assert private_key().splitlines()[1].encode() not in pickled
    assert str(file).encode() in pickled
    assert pickle.loads(pickled) == aiven_layout({"private-key": str(file)})
    assert pickle.loads(pickle.dumps(private_keys(str(file)))).unwrap(wrapped) is not None


@pytest.mark.parametrize(("in_file", "code"), [(True, "path-missing"), (False, "private-key")])
def test_a_node_without_the_keys_refuses_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_file: bool, code: str
) -> None:
    file = tmp_path / "private.pem"
    file.write_text(private_key())
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, private_key())
    pickled = pickle.dumps(private_keys(str(file) if in_file else None))

    file.unlink()
    monkeypatch.delenv(ENVIRONMENT_VARIABLE)

    with refused_with(code):
        pickle.loads(pickled)
    assert private_key().splitlines()[1].encode() not in pickled
