"""What is sealed is read by its recipients alone, where it belongs, and only as it was written."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from tests.backup.key_files import key_files
from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.ops.backup.key_pairs import (
    IDENTITY_PASSWORD,
    Identity,
    Recipient,
    read_identity,
    read_recipient,
    read_recipients,
)
from tieredctl.ops.backup.sealing import AnotherKey, seal, unseal

PLACE = b'{"set": 7}'


@cache
def pair(which: int) -> tuple[Recipient, Identity]:
    with TemporaryDirectory() as folder:
        files = key_files(Path(folder), which)
        return read_recipient(files.public), read_identity(files.private, {})


@given(data=st.binary(max_size=5000), place=st.binary(max_size=80), count=st.integers(1, 3))
def test_every_recipient_reads_it_and_nobody_else(data: bytes, place: bytes, count: int) -> None:
    pairs = [pair(which) for which in range(count)]

    sealed = seal(data, [recipient for recipient, _ in pairs], place)

    assert [unseal(sealed, identity, place) for _, identity in pairs] == [data] * count
    with pytest.raises(AnotherKey):
        unseal(sealed, pair(9)[1], place)


@given(data=st.data(), place=st.binary(max_size=8))
def test_altered_anywhere_cut_or_elsewhere_it_is_refused(data: st.DataObject, place: bytes) -> None:
    recipient, identity = pair(0)
    sealed = seal(b"a secret of some length", [recipient], PLACE)
    at = data.draw(st.integers(0, len(sealed) - 1))
    altered = bytearray(sealed)
    altered[at] ^= data.draw(st.integers(1, 255))

    for wrong in (bytes(altered), sealed[:at], sealed + b"\0"):
        with pytest.raises((DecodeError, AnotherKey)):
            unseal(wrong, identity, PLACE)
    with pytest.raises(DecodeError):
        unseal(sealed, identity, place)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        unseal(data, pair(0)[1], PLACE)


def test_two_seals_of_the_same_have_no_key_nonce_or_ciphertext_in_common() -> None:
    recipient, _ = pair(0)
    first, second = (seal(bytes(1000), [recipient], PLACE) for _ in range(2))

    assert first.split(b"\n", 1)[0] != second.split(b"\n", 1)[0]
    assert first[-1000:] != second[-1000:]


def test_an_encrypted_private_key_needs_its_password(tmp_path: Path) -> None:
    files = key_files(tmp_path, 0, password="open sesame")

    assert read_identity(files.private, {IDENTITY_PASSWORD: "open sesame"}).fingerprint == pair(0)[0].fingerprint
    for variables in ({}, {IDENTITY_PASSWORD: "sesame"}):
        with pytest.raises(TieredctlError) as refused:
            read_identity(files.private, variables)
        assert refused.value.code is ErrorCode.PRIVATE_KEY
        assert "sesame" not in f"{refused.value.message} {refused.value.hint}"


def test_a_password_that_a_key_does_not_need_is_left_alone(tmp_path: Path) -> None:
    files = key_files(tmp_path, 0)

    assert read_identity(files.private, {IDENTITY_PASSWORD: "x"}).fingerprint == pair(0)[0].fingerprint


def test_a_recipient_given_twice_is_one(tmp_path: Path) -> None:
    files = key_files(tmp_path, 0)

    assert len(read_recipients([files.public, files.public, key_files(tmp_path, 1).public])) == 2


@pytest.mark.parametrize("what", ["short", "private", "curve", "text", "empty", "folder", "missing"])
def test_what_is_no_long_enough_rsa_key_is_refused(what: str, tmp_path: Path) -> None:
    public, private = tmp_path / "public", tmp_path / "private"
    if what == "short":
        files = key_files(tmp_path, 5, bits=1024)
        public, private = files.public, files.private
    elif what == "private":
        files = key_files(tmp_path, 0)
        public, private = files.private, files.public
    elif what == "curve":
        key = generate_private_key(SECP256R1())
        public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    elif what == "folder":
        public = private = tmp_path
    elif what != "missing":
        for file in (public, private):
            file.write_text("" if what == "empty" else "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    no_files = {"missing": ErrorCode.PATH_MISSING, "folder": ErrorCode.USAGE}
    code = no_files.get(what, ErrorCode.PRIVATE_KEY)

    with pytest.raises(TieredctlError) as of_public:
        read_recipient(public)
    with pytest.raises(TieredctlError) as of_private:
        read_identity(private, {})

    assert (of_public.value.code, of_private.value.code) == (code, code)
    hints = (of_public.value.hint, of_private.value.hint)
    assert not any("--layout-option" in (one or "") for one in hints), "that is for segments"
