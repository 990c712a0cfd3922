"""The client that asks for topics by id follows the same properties as librdkafka, or none is made."""

from __future__ import annotations

import ssl
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from kafka.errors import KafkaTimeoutError, SaslAuthenticationFailedError

from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.kafka.connection_settings import kafka_python_settings
from tieredctl.kafka.kafka_python_client import bootstrapped
from tieredctl.kafka.topics_by_id import TopicsById

LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
BEARER = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://issuer/token",
}
STRIMZI = BEARER | {
    "sasl.login.callback.handler.class": "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
}
TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate and its key, in PEM files."""
    folder = tmp_path_factory.mktemp("identity")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    made = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, made.public_key(), 1, now, now + timedelta(days=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate.write_bytes(builder.sign(made, hashes.SHA256()).public_bytes(Encoding.PEM))
    key.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, key


def context_of(**properties: str) -> ssl.SSLContext:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    context = kafka_python_settings("h:1", {"security.protocol": "SSL", **named})["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    return context


def test_without_properties_the_listener_is_a_plain_one() -> None:
    settings = kafka_python_settings("one:9092, two:9093", {})

    assert settings["bootstrap_servers"] == ["one:9092", "two:9093"]
    assert settings["security_protocol"] == "PLAINTEXT"
    assert "ssl_context" not in settings


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password(name: str, mechanism: str) -> None:
    properties = {"security.protocol": "sasl_plaintext", name: mechanism, "sasl.username": "u", "sasl.password": "p"}

    settings = kafka_python_settings("h:1", properties)

    found = [settings[f"sasl_{what}"] for what in ("mechanism", "plain_username", "plain_password")]
    assert (settings["security_protocol"], found) == ("SASL_PLAINTEXT", [mechanism, "u", "p"])


def test_servers_are_verified_by_name_against_the_authorities_that_were_named(identity: tuple[Path, Path]) -> None:
    context = context_of(ssl_ca_location=str(identity[0]))

    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert [one["subject"] for one in context.get_ca_certs()] == [((("commonName", "localhost"),),)]
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_authorities_may_stand_in_the_properties_themselves(identity: tuple[Path, Path]) -> None:
    assert len(context_of(ssl_ca_pem=identity[0].read_text()).get_ca_certs()) == 1


def test_names_and_certificates_go_unverified_if_the_properties_say_so(identity: tuple[Path, Path]) -> None:
    unnamed = context_of(ssl_endpoint_identification_algorithm="none", ssl_ca_location=str(identity[0]))
    unverified = context_of(enable_ssl_certificate_verification="false")

    assert (unnamed.verify_mode, unnamed.check_hostname) == (ssl.CERT_REQUIRED, False)
    assert (unverified.verify_mode, unverified.check_hostname) == (ssl.CERT_NONE, False)


def test_revoked_certificates_are_refused_if_the_properties_say_so(identity: tuple[Path, Path]) -> None:
    context = context_of(ssl_crl_location=str(identity[0]))

    assert context.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF


def test_a_clients_own_certificate_in_files_or_in_the_properties(identity: tuple[Path, Path]) -> None:
    certificate, key = identity

    context_of(ssl_certificate_location=str(certificate), ssl_key_location=str(key))
    context_of(ssl_certificate_pem=certificate.read_text(), ssl_key_pem=key.read_text())


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "LOGIN"}, "LOGIN"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "GSSAPI"),
        ({**BEARER, "sasl.login.callback.handler.class": "com.example.Handler"}, "com.example.Handler"),
        ({**BEARER, "sasl.oauthbearer.jwt.retriever.class": "com.example.Retriever"}, "com.example.Retriever"),
        ({**BEARER, "sasl.oauthbearer.token.endpoint.url": "ftp://issuer/token"}, "not an http or https URL"),
        ({**BEARER, "sasl.jaas.config": "com.example.Login required;"}, "com.example.Login"),
        ({**STRIMZI, "sasl.jaas.config": f'{LOGIN} required oauth.refresh.token="x";'}, "oauth.refresh.token"),
        ({"security.protocol": "SSL", "ssl.ca.location": "/no/such/file.pem"}, "certificates"),
        ({"security.protocol": "SSL", "ssl.ca.pem": "no certificate"}, "certificates"),
        ({"security.protocol": "SSL", "ssl.certificate.pem": "none", "ssl.key.pem": "none"}, "key"),
    ],
)
def test_what_the_client_cannot_follow_is_refused(properties: dict[str, str], said: str) -> None:
    with pytest.raises(TieredctlError, match=said) as refused:
        kafka_python_settings("h:1", properties)

    assert refused.value.exit_code is ExitCode.USAGE


def test_a_cluster_that_cannot_be_asked_answers_nothing_and_says_why(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.client.secret=s3cret\n")
    cluster = TopicsById("localhost:9092", config)

    answers = cluster.ask([TOPIC_ID])

    assert answers == {TOPIC_ID: None}
    assert "OAUTHBEARER" in str(cluster.describe()["unanswered"])
    assert "s3cret" not in str(cluster.describe())


def test_a_client_that_is_not_installed_leaves_topics_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kafka.errors", None)
    cluster = TopicsById("localhost:9092")

    answers = cluster.ask([TOPIC_ID])

    assert answers == {TOPIC_ID: None}
    assert "pip install 'tieredctl[kafka]'" in str(cluster.describe()["unanswered"])


@pytest.mark.parametrize("topic_id", ["A" * 22, "B" * 22, "short"])
def test_what_can_be_no_topics_id_is_not_asked_for(topic_id: str) -> None:
    cluster = TopicsById("localhost:9092")

    assert cluster.ask([topic_id]) == {topic_id: None}
    assert "unanswered" not in cluster.describe()


def test_of_several_servers_each_try_takes_longer_and_all_no_longer_than_stated() -> None:
    several, one = ({"bootstrap_servers": ["a:1", "b:1"][:count]} for count in (2, 1))
    for settings, tries in ((several, 5), (one, 1)):
        for fails in range(tries + 1):
            asked = list[int]()

            def bootstrap(milliseconds: int, asked: list[int] = asked, fails: int = fails) -> int:
                asked.append(milliseconds)
                if len(asked) <= fails:
                    raise KafkaTimeoutError
                return len(asked)

            if fails < tries:
                assert bootstrapped(bootstrap, settings, 15.0) == fails + 1
            else:
                with pytest.raises(KafkaTimeoutError):
                    bootstrapped(bootstrap, settings, 15.0)
                assert 14_900 < sum(asked) <= 15_000
            assert asked == sorted(asked)


def test_what_is_refused_is_not_asked_again() -> None:
    def refused(_: int) -> None:
        asked.append(0)
        raise SaslAuthenticationFailedError

    asked = list[int]()
    with pytest.raises(SaslAuthenticationFailedError):
        bootstrapped(refused, {"bootstrap_servers": ["a:1", "b:1"]}, 15.0)
    assert len(asked) == 1
