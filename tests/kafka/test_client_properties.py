"""`--command-config`: Kafka's client properties, as librdkafka is given them."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.kafka.broker_connection import BrokerConnection
from tieredctl.kafka.client_properties import read_client_properties, timeout_seconds, without_secrets

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def read(folder: Path, text: str) -> dict[str, str]:
    file = folder / "client.properties"
    file.write_text(text)
    return read_client_properties(file)


def refusal(folder: Path, text: str) -> TieredctlError:
    with pytest.raises(TieredctlError) as refused:
        read(folder, text)
    assert refused.value.exit_code is ExitCode.USAGE
    return refused.value


def test_without_a_file_nothing_is_set() -> None:
    assert read_client_properties(None) == {}


def test_names_that_both_know_and_librdkafkas_own_pass(tmp_path: Path) -> None:
    text = "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.ca.location=/etc/ca.pem\nsocket.timeout.ms=5000\n"

    assert read(tmp_path, text) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "ssl.ca.location": "/etc/ca.pem",
        "socket.timeout.ms": "5000",
    }


@pytest.mark.parametrize(
    ("login", "username", "password"),
    [
        (f'{PLAIN} required username="alice" password="alice-secret";', "alice", "alice-secret"),
        (f'{SCRAM} required username="alice" password="a;b=c d";', "alice", "a;b=c d"),
        (f"{SCRAM} required username='alice' password='it is';", "alice", "it is"),
        (f"{PLAIN} required username=alice password=plain ;", "alice", "plain"),
        # A properties file takes one backslash of each pair, the login the next.
        (f'{PLAIN} required username="a" password="x\\\\"y\\\\\\\\z";', "a", 'x"y\\z'),
        (f'{PLAIN} required \\\n  username="alice" \\\n  password="alice-secret";', "alice", "alice-secret"),
        (f'{SCRAM} sufficient user="x" username="bob" password="p";', "bob", "p"),
    ],
)
def test_user_and_password_come_out_of_the_login(tmp_path: Path, login: str, username: str, password: str) -> None:
    assert read(tmp_path, f"sasl.jaas.config={login}\n") == {"sasl.username": username, "sasl.password": password}


@pytest.mark.parametrize(
    ("login", "said"),
    [
        (f'{PLAIN} required username="alice" password="hush"', "semicolon"),
        (f'{PLAIN} required username="hush";', "no password"),
        ("hush", "semicolon"),
    ],
)
def test_a_login_that_cannot_be_used_is_refused_without_telling_it(tmp_path: Path, login: str, said: str) -> None:
    refused = refusal(tmp_path, f"sasl.jaas.config={login}\n")

    assert said in refused.message
    assert "hush" not in refused.message + refused.hint


def test_a_trust_store_in_pem_is_the_authority(tmp_path: Path) -> None:
    store = tmp_path / "trust.pem"
    store.write_text("some text in front\n" + PEM)

    found = read(tmp_path, f"ssl.truststore.type=PEM\nssl.truststore.location={store}\nssl.truststore.password=x\n")

    assert found == {"ssl.ca.location": str(store)}


def test_certificates_in_the_file_itself_get_their_line_ends_back(tmp_path: Path) -> None:
    body = "A" * 100
    text = f"ssl.truststore.type=PEM\nssl.truststore.certificates=-----BEGIN CERTIFICATE----- \\\n  {body} \\\n"

    found = read(tmp_path, text + "  -----END CERTIFICATE-----\n")

    lines = found["ssl.ca.pem"].split("\n")
    assert lines == ["-----BEGIN CERTIFICATE-----", "A" * 64, "A" * 36, "-----END CERTIFICATE-----", ""]


def test_a_pem_key_store_holds_certificate_and_key(tmp_path: Path) -> None:
    store = tmp_path / "client.pem"
    store.write_text(PEM)

    found = read(tmp_path, f"ssl.keystore.type=PEM\nssl.keystore.location={store}\n")

    assert found == {"ssl.certificate.location": str(store), "ssl.key.location": str(store)}


def test_a_store_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "/nowhere/trust.pem" in refusal(tmp_path, "ssl.truststore.location=/nowhere/trust.pem\n").message


@pytest.mark.parametrize(("java", "librdkafka"), [("", "none"), ("https", "https")])
def test_the_check_of_host_names(tmp_path: Path, java: str, librdkafka: str) -> None:
    name = "ssl.endpoint.identification.algorithm"

    assert read(tmp_path, f"{name}={java}\n") == {name: librdkafka}


def test_values_that_java_would_look_up_are_refused(tmp_path: Path) -> None:
    assert "config.providers" in refusal(tmp_path, "config.providers=file\n").message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TieredctlError, match="There is no") as refused:
        read_client_properties(tmp_path / "absent")

    assert refused.value.code == "path-missing"


def test_a_folder_is_not_a_file_of_properties(tmp_path: Path) -> None:
    with pytest.raises(TieredctlError, match="cannot be read"):
        read_client_properties(tmp_path)


def test_secrets_are_taken_out_of_what_others_say() -> None:
    properties = {"sasl.password": "hush", "sasl.username": "alice", "ssl.key.pem": "KEY", "ssl.key.password": ""}

    assert without_secrets("alice said hush, KEY", properties) == "alice said (hidden), (hidden)"


def test_the_timeout_of_requests_is_that_of_the_file() -> None:
    assert timeout_seconds({"request.timeout.ms": "1500"}, 15.0) == 1.5
    assert timeout_seconds({}, 15.0) == 15.0


@pytest.mark.parametrize("text", ["0", "-1", "soon", "1e3", "900001", ""])
def test_a_timeout_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(TieredctlError, match=r"request\.timeout\.ms") as refused:
        timeout_seconds({"request.timeout.ms": text}, 15.0)

    assert refused.value.exit_code is ExitCode.USAGE


def client(folder: Path, text: str) -> BrokerConnection:
    file = folder / "client.properties"
    file.write_text(text)
    made = BrokerConnection("localhost:1", file, 15.0, defaults={}, demanded={}, operations="Describe")
    made.judge_properties(Producer)
    return made


def test_what_means_nothing_to_librdkafka_is_ignored_and_named(tmp_path: Path) -> None:
    made = client(tmp_path, "key.deserializer=org.example.Deserializer\nreceive.buffer.bytes=1\nclient.id=me\n")

    assert made.ignored_properties == ["key.deserializer", "receive.buffer.bytes"]


def test_a_value_that_librdkafka_does_not_take_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TieredctlError, match=r"security\.protocol") as refused:
        client(tmp_path, "security.protocol=TLS\n")

    assert refused.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("name", "stated", "meant"),
    [
        ("security.protocol", "SASL_SLL", "SASL_SSL"),
        ("security.protocol", "PLAINTXT", "PLAINTEXT"),
        ("sasl.mechanism", "SCRAM-SHA256", "SCRAM-SHA-256"),
        ("sasl.mechanisms", "PLAINN", "PLAIN"),
        ("ssl.endpoint.identification.algorithm", "htps", "https"),
        ("ssl.truststore.type", "PEN", "PEM"),
        ("ssl.keystore.type", "PKCS", "PKCS12"),
        ("enable.ssl.certificate.verification", "flase", "false"),
        ("isolation.level", "read_comitted", "read_committed"),
        ("client.dns.lookup", "use_all_dns_ip", "use_all_dns_ips"),
        ("metadata.recovery.strategy", "rebotstrap", "REBOOTSTRAP"),
    ],
)
def test_a_misspelt_value_is_refused_by_its_property_and_the_nearest_value(
    tmp_path: Path, name: str, stated: str, meant: str
) -> None:
    refused = refusal(tmp_path, f"sasl.mechanism=PLAIN\nsecurity.protocol=SASL_PLAINTEXT\n{name}={stated}\n")

    assert name in str(refused)
    assert stated in str(refused)
    assert f"Did you mean {meant}" in (refused.hint or "")


def test_values_are_taken_in_any_case(tmp_path: Path) -> None:
    text = "security.protocol=sasl_ssl\nsasl.mechanism=plain\nmetadata.recovery.strategy=none\n"

    assert read(tmp_path, text)["security.protocol"] == "sasl_ssl"
