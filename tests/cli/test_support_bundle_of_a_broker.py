"""`support-bundle` of a broker that asks for a password: no secret is in it or on the screen, and no hidden name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.cli.command_line import Outcome, own_process
from tests.cli.secret_spellings import SPELLINGS
from tests.cli.unpacked_bundle import manifest, unpacked
from tests.rigs.broker import KafkaBroker
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.topics import admin_client, known_topics

USER, PASSWORD = "operator", 'Tr0ub4dor & 3/+="ü'
STORE_SECRET, KEY, TOKEN = "st0re-pa55/word+x", "wJalrXUtnFEMI/K7MDENG+bPxRfiCY", "IQoJb3JpZ2luX2Vj=="
MECHANISMS = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
JAAS = "org.apache.kafka.common.security.{module} required username={user} password={password};"


@contextmanager
def user_of(broker: KafkaBroker) -> Iterator[None]:
    """A user whose password has all that is written differently in files, URLs and Base64; may do nothing."""
    admin = admin_client(broker.bootstrap_server)
    for one in MECHANISMS:
        made = UserScramCredentialUpsertion(USER, ScramCredentialInfo(one, 4096), PASSWORD.encode())
        admin.alter_user_scram_credentials([made])[USER].result(30)
    try:
        yield
    finally:
        for one in MECHANISMS:
            admin.alter_user_scram_credentials([UserScramCredentialDeletion(USER, one)])[USER].result(30)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def client_properties(folder: Path, mechanism: str, user: str, password: str, *, as_jaas: bool) -> Path:
    file = folder / "client.properties"
    if as_jaas:
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        login = JAAS.format(module=module, user=quoted(user), password=quoted(password))
        settings = f"sasl.jaas.config={login}".replace("\\", "\\\\")
    else:
        settings = f"sasl.username={user}\nsasl.password={password}"
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n{settings}\n", encoding="utf-8")
    return file


def assert_without_secrets(bundle: Path, outcome: Outcome, secrets: Mapping[str, str]) -> None:
    for place, data in {**unpacked(bundle), "the screen": f"{outcome.out}{outcome.err}".encode()}.items():
        for name, secret in secrets.items():
            for spelled in SPELLINGS:
                assert spelled(secret).encode() not in data, f"{name} {spelled.__name__} in {place}"


@pytest.mark.parametrize(
    ("mechanism", "may_read", "as_jaas"),
    [
        ("PLAIN", True, True),
        ("SCRAM-SHA-512", False, False),
        pytest.param("PLAIN", True, False, marks=pytest.mark.exhaustive),
        pytest.param("SCRAM-SHA-256", False, True, marks=pytest.mark.exhaustive),
    ],
)
def test_no_secret_is_in_it_or_on_the_screen(
    mechanism: str, may_read: bool, as_jaas: bool, kafka_4: DrivenBroker, tmp_path: Path
) -> None:
    broker, bundle = kafka_4.broker, tmp_path / "bundle.tar.gz"
    listeners = broker.secure_listeners
    user, password = (listeners.username, listeners.password) if may_read else (USER, PASSWORD)
    config = client_properties(tmp_path, mechanism, user, password, as_jaas=as_jaas)
    endpoint = f"http://admin:{STORE_SECRET.replace('/', '%2F').replace('+', '%2B')}@127.0.0.1:1"
    words = ("--bootstrap-server", listeners.sasl_plaintext, "--command-config", config, "--store", "s3://bucket")
    environment = {
        "AWS_SECRET_ACCESS_KEY": KEY,
        "AWS_SESSION_TOKEN": TOKEN,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "TMPDIR": str(tmp_path),
    }

    with user_of(broker):
        outcome = own_process(
            *("--debug", "support-bundle", "--to", bundle, *words, "--store-option", f"endpoint={endpoint}"),
            **environment,
        )

    problems = {item["name"]: item["problem"] for item in manifest(bundle)["items"] if item["problem"]}
    assert outcome.exit_code == (0 if may_read else 5), outcome.err
    assert ("doctor.json" in problems, "metadata-stats.json" in problems) == (not may_read, not may_read)
    assert "(hidden)" in unpacked(bundle)["context.json"].decode()
    secrets = {"password": password, "store": STORE_SECRET, "key": KEY, "token": TOKEN}
    assert_without_secrets(bundle, outcome, secrets)


def test_no_topic_of_the_cluster_is_named_where_names_are_hidden(kafka_4: DrivenBroker, tmp_path: Path) -> None:
    server, bundle = kafka_4.broker.bootstrap_server, tmp_path / "bundle.tar.gz"
    names = {*kafka_4.cluster.topics, *known_topics(server)}

    outcome = own_process(
        *("support-bundle", "--to", bundle, "--bootstrap-server", server, "--hide-names"),
        XDG_STATE_HOME=str(tmp_path / "state"),
        TMPDIR=str(tmp_path),
    )

    inside = {name: data.decode() for name, data in unpacked(bundle).items()}
    assert outcome.exit_code == 0, outcome.err
    assert "topic-" in inside["settings.json"]
    for topic in (name for name in names if not name.startswith("__")):
        assert [name for name, text in inside.items() if f'"{topic}' in text or f"{topic}:" in text] == [], topic
