"""PKCS12 and JKS stores, as `keytool` makes them, give the certificates and keys that they were made of."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tests.shares import divided
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.kafka.client_properties import read_client_properties
from tieredctl.kafka.tls_context import ssl_context

STORES = Path(__file__).parents[1] / "captures" / "key-stores"
KEY_PASSWORDS = {"key.jks": "ssl.key.password=keypass", "key.p12": ""}
LARGEST = 1 << 24


def read(folder: Path, *lines: str) -> dict[str, str]:
    file = folder / "client.properties"
    file.write_text("\n".join(lines))
    return read_client_properties(file)


def trust(folder: Path, store: Path, password: str | None = "storepass") -> dict[str, str]:
    given = [] if password is None else [f"ssl.truststore.password={password}"]
    return read(folder, f"ssl.truststore.location={store}", *given)


def identity(folder: Path, store: Path, password: str = "storepass", *more: str) -> dict[str, str]:
    return read(folder, f"ssl.keystore.location={store}", f"ssl.keystore.password={password}", *more)


def refusal(folder: Path, *lines: str) -> TieredctlError:
    with pytest.raises(TieredctlError) as refused:
        read(folder, *lines)
    return refused.value


def pem(name: str) -> str:
    return (STORES / name).read_text().strip()


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12"])
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_trust_store_of_either_type_is_opened_whatever_type_is_stated(tmp_path: Path, name: str, kind: str) -> None:
    found = read(
        tmp_path,
        f"ssl.truststore.location={STORES / name}",
        f"ssl.truststore.type={kind}",
        "ssl.truststore.password=storepass",
    )

    assert {name: text.strip() for name, text in found.items()} == {"ssl.ca.pem": pem("ca.pem")}
    (authority,) = ssl_context(found).get_ca_certs()
    assert authority["subject"] == ((("commonName", "ca"),),)


@pytest.mark.parametrize("name", KEY_PASSWORDS)
def test_a_key_store_gives_the_key_and_its_chain(tmp_path: Path, name: str) -> None:
    found = identity(tmp_path, STORES / name, "storepass", KEY_PASSWORDS[name])

    keys = [load_pem_private_key(text.encode(), None) for text in (found["ssl.key.pem"], pem("key.pem"))]
    (own, expected) = (key.private_numbers().private_value for key in keys if isinstance(key, EllipticCurvePrivateKey))
    assert own == expected
    assert found["ssl.certificate.pem"].strip() == f"{pem('client.pem')}\n{pem('ca.pem')}"
    ssl_context(found)


def test_a_java_trust_store_needs_no_password_as_in_java(tmp_path: Path) -> None:
    assert trust(tmp_path, STORES / "trust.jks", None)["ssl.ca.pem"].strip() == pem("ca.pem")


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12", "key.jks", "key.p12"])
def test_a_wrong_password_is_one_sentence_without_it(tmp_path: Path, name: str) -> None:
    what = "trust" if name.startswith("trust") else "key"

    refused = refusal(
        tmp_path, f"ssl.{what}store.location={STORES / name}", f"ssl.{what}store.password=hush", "ssl.key.password=hush"
    )

    assert (refused.exit_code, str(STORES / name) in refused.message) == (ExitCode.USAGE, True)
    assert "hush" not in refused.message + refused.hint


def test_the_password_of_a_key_is_another_than_its_stores(tmp_path: Path) -> None:
    lines = (f"ssl.keystore.location={STORES / 'key.jks'}", "ssl.keystore.password=storepass")

    assert refusal(tmp_path, *lines).code is ErrorCode.USAGE
    assert refusal(tmp_path, *lines, "ssl.key.password=storepass").code is ErrorCode.USAGE


@pytest.mark.divided
@pytest.mark.parametrize("name", ["trust.jks", "trust.p12", "key.jks", "key.p12"])
def test_a_store_that_is_cut_or_altered_anywhere_is_refused(tmp_path: Path, name: str) -> None:
    whole, store = (STORES / name).read_bytes(), tmp_path / name
    what = name.partition(".")[0]
    lines = (f"ssl.{what}store.location={store}", f"ssl.{what}store.password=storepass", KEY_PASSWORDS.get(name, ""))
    step = 5 if name.endswith("jks") else 23  # a PKCS12 store is made to take long to open

    for end in divided(range(0, len(whole), step)):
        store.write_bytes(whole[:end])
        assert refusal(tmp_path, *lines).code is ErrorCode.USAGE
    for at in divided(range(0, len(whole), step)):
        store.write_bytes(whole[:at] + bytes((whole[at] ^ 0x41,)) + whole[at + 1 :])
        assert refusal(tmp_path, *lines).code is ErrorCode.USAGE


def test_a_store_that_asks_for_hours_of_work_is_refused_at_once(tmp_path: Path) -> None:
    whole, digest = (STORES / "trust.p12").read_bytes(), 79  # its length, at the end
    outer, inner, most = int.from_bytes(whole[2:4]) + 2, whole[1 - digest] + 2, b"\x02\x04\x7f\xff\xff\xff"
    store = tmp_path / "trust.p12"
    store.write_bytes(
        whole[:2] + outer.to_bytes(2) + whole[4:-digest] + bytes((0x30, inner)) + whole[2 - digest : -4] + most
    )

    refused = refusal(tmp_path, f"ssl.truststore.location={store}", "ssl.truststore.password=storepass")

    assert "iterations" in refused.message


def test_a_store_that_cryptography_cannot_open_is_refused(tmp_path: Path) -> None:
    """Its key is of secp112r1, as `openssl ecparam -name secp112r1 -genkey` makes it."""
    lines = (f"ssl.keystore.location={STORES / 'unsupported-curve.p12'}", "ssl.keystore.password=storepass")

    assert refusal(tmp_path, *lines).code is ErrorCode.USAGE


def test_a_store_of_millions_of_elements_is_refused_at_once(tmp_path: Path) -> None:
    store, elements = tmp_path / "trust.p12", b"\x05\x00" * (1 << 20)
    store.write_bytes(b"\x30\x84" + len(elements).to_bytes(4) + elements)

    refused = refusal(tmp_path, f"ssl.truststore.location={store}", "ssl.truststore.password=storepass")

    assert "elements" in refused.message


def test_what_is_no_store_or_far_too_large_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"anything", b"\x30", b"\xfe\xed\xfe\xed" + b"\xff" * 50, bytes(LARGEST + 1)):
        (tmp_path / "store").write_bytes(content)
        refused = refusal(tmp_path, f"ssl.truststore.location={tmp_path / 'store'}", "ssl.truststore.password=x")
        assert refused.code is ErrorCode.USAGE


def test_a_store_without_what_it_is_given_for_is_refused(tmp_path: Path) -> None:
    for name in ("trust.jks", "trust.p12"):
        lines = (f"ssl.keystore.location={STORES / name}", "ssl.keystore.password=storepass")
        assert "no private key" in refusal(tmp_path, *lines).message
    lines = (f"ssl.truststore.location={STORES / 'key.jks'}", "ssl.truststore.password=storepass")
    assert "no trusted certificate" in refusal(tmp_path, *lines).message


def test_an_encrypted_key_in_the_properties_takes_its_password(tmp_path: Path) -> None:
    key = load_pem_private_key(pem("key.pem").encode(), None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"keypass")).decode()
    one_line = "".join(encrypted.splitlines())
    lines = (f"ssl.keystore.certificate.chain={pem('client.pem')}".replace("\n", ""), f"ssl.keystore.key={one_line}")

    ssl_context(read(tmp_path, "ssl.keystore.type=PEM", *lines, "ssl.key.password=keypass"))

    for wrong in ("ssl.key.password=hush", ""):
        with pytest.raises(TieredctlError) as refused:
            ssl_context(read(tmp_path, "ssl.keystore.type=PEM", *lines, wrong))
        assert refused.value.code is ErrorCode.USAGE


def test_a_key_never_lies_on_the_disk_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    written: list[tuple[int, str]] = []
    load = ssl.SSLContext.load_cert_chain

    def observed(context: ssl.SSLContext, certfile: str, keyfile: str | None = None, password: str = "") -> None:
        written.append((Path(certfile).stat().st_mode & 0o777, Path(certfile).read_text()))
        load(context, certfile, keyfile, password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", observed)
    found = identity(tmp_path, STORES / "key.p12")

    ssl_context(found)

    ((mode, text),) = written
    assert (mode, "BEGIN PRIVATE KEY" in text, "BEGIN ENCRYPTED PRIVATE KEY" in text) == (0o600, False, True)
    assert [file.name for file in tmp_path.iterdir()] == ["client.properties"]
