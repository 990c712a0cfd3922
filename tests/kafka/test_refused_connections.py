"""Whatever keeps a client out is one sentence with the right hint, after one connection, from every command."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import Outcome, this_process
from tests.metadata_logs import started
from tests.rigs.broker import KafkaBroker
from tests.rigs.certificates import self_signed
from tests.rigs.driven_brokers import jars_of
from tests.rigs.relays import TlsFront, TornTls
from tests.rigs.token_issuer import TokenIssuer
from tests.rigs.topics import create_topics
from tests.rigs.waiting import wait_until
from tieredctl.cli.main import run
from tieredctl.errors import TieredctlError
from tieredctl.kafka.metadata_producer import MetadataProducer
from tieredctl.kafka.topics_by_id import TopicsById

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("no_restart_awaited")]

COMMANDS = {"cluster": ("topic", "list"), "metadata topic": ("metadata", "stats"), "consumer groups": ("doctor",)}
"""By what is connected to first; what writes events has another client, and a test of its own."""
FAILED, FINDINGS, INCOMPLETE, SECONDS = 1, 3, 5, 30
RECORDS = 40
"""More than a broker sends in TLS to say all that it is asked."""
ELSEWHERE = "advertised.invalid:9092"
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@dataclass(frozen=True)
class Cause:
    """What a client is told wrongly, and what of that is said. `server` and properties may name what `values` has."""

    server: str
    properties: Mapping[str, str]
    said: str
    hint: str
    is_noted: bool = False
    """Whether the broker counts it as a failed authentication."""
    step: str = "sign-in"
    """Where `doctor connect` says that it ended."""


def sasl(mechanism: str, username: str = "{username}", password: str = "{password}") -> dict[str, str]:
    return {"sasl.mechanism": mechanism, "sasl.username": username, "sasl.password": password}


TLS = {"security.protocol": "SSL", "ssl.ca.location": "{certificate}"}
SASL_TLS = {"security.protocol": "SASL_SSL", "ssl.ca.location": "{certificate}"}
SASL_PLAIN = {"security.protocol": "SASL_PLAINTEXT"}
SCRAM = sasl("SCRAM-SHA-512")
CAUSES = {
    "password": Cause(
        "{sasl_ssl}", SASL_TLS | sasl("SCRAM-SHA-512", password="x9secret"), "refused the user", "password", True
    ),
    "password of PLAIN": Cause(
        "{sasl_ssl}", SASL_TLS | sasl("PLAIN", password="x9secret"), "refused the user", "password", True
    ),
    "user": Cause("{sasl_ssl}", SASL_TLS | sasl("SCRAM-SHA-256", "nobody"), "refused the user", "Check the user", True),
    "authority": Cause(
        "{sasl_ssl}",
        SASL_TLS | SCRAM | {"ssl.ca.location": "{other}"},
        "is not trusted",
        "ssl.truststore",
        True,
        step="tls",
    ),
    "no certificate": Cause("{ssl}", TLS, "needs a client certificate", "ssl.keystore", True, step="tls"),
    "certificate": Cause(
        "{ssl}",
        TLS | {"ssl.certificate.location": "{other}", "ssl.key.location": "{other_key}"},
        "refused the client's certificate",
        "ssl.keystore",
        True,
        step="tls",
    ),
    "host name": Cause(
        "{sasl_ssl_by_another_name}", SASL_TLS | SCRAM, "for another host name", "in the certificate", True, step="tls"
    ),
    "mechanism": Cause(
        "{sasl_plaintext}", SASL_PLAIN | sasl("PLAIN"), "it offers SCRAM-SHA-512", "sasl.mechanism", True
    ),
    "plain against TLS": Cause("{ssl}", {}, "speaks TLS", "security.protocol", True, step="versions"),
    "SASL without TLS against TLS": Cause(
        "{sasl_ssl}", SASL_PLAIN | SCRAM, "speaks TLS", "security.protocol", True, step="versions"
    ),
    "TLS against plain": Cause("{plain}", TLS, "does not speak TLS", "PLAINTEXT", step="tls"),
    "no login": Cause("{sasl_plaintext}", {}, "needs a login", "sasl.jaas.config"),
    "no login over TLS": Cause("{sasl_ssl}", TLS, "needs a login", "SASL_SSL"),
    "login against none": Cause("{plain}", SASL_PLAIN | SCRAM, "has no login", "to PLAINTEXT"),
    "closed port": Cause("localhost:1", {}, "connection refused", "Check host, port", step="tcp"),
    "host": Cause("no-such-host.invalid:9092", {}, "unknown host name", "Check host", step="name"),
}
TRUSTING_BOTH = Cause(
    "{sasl_ssl}",
    SASL_TLS | SCRAM | {"ssl.ca.location": "{both_certificates}", "ssl.endpoint.identification.algorithm": ""},
    said="",
    hint="",
)


@dataclass(frozen=True)
class Guarded:
    """A broker with listeners of each kind: the one for TLS wants certificates, one for SASL offers one mechanism."""

    broker: KafkaBroker
    values: Mapping[str, str]
    folder: Path

    def config(self, cause: Cause) -> tuple[str, Path]:
        """The server and the file of properties."""
        file = self.folder / "client.properties"
        lines = (f"{name}={value.format_map(self.values)}\n" for name, value in cause.properties.items())
        file.write_text("request.timeout.ms=20000\n" + "".join(lines))
        return cause.server.format_map(self.values), file

    def failed_logins(self) -> int:
        return self.broker.server_log.read_text(errors="replace").count("ailed authentication")

    def has_more_failed_logins(self, than: int) -> bool:
        return self.failed_logins() > than


class _AdvertisedElsewhere(KafkaBroker):
    """A broker whose listener SASL_PLAINTEXT sends clients to a host that there is not, and SASL_SSL to a front of that
    one, whose certificate ends soon."""

    def _formatting(self, settings: Path) -> list[str]:
        arguments, secure = super()._formatting(settings), self.secure_listeners
        self.certificate = self_signed("front", datetime.now(UTC) + timedelta(days=3), self.work_dir)
        self.front = TlsFront(self.certificate, port_of(secure.sasl_plaintext))
        advertised = [f"PLAINTEXT://{self.bootstrap_server}", f"SSL://{secure.ssl}", f"SASL_SSL://{self.front_server}"]
        with settings.open("a", encoding="utf-8") as properties:
            properties.write(f"advertised.listeners={','.join(advertised)},SASL_PLAINTEXT://{ELSEWHERE}\n")
        return arguments

    @property
    def front_server(self) -> str:
        return f"localhost:{self.front.port}"


def port_of(server: str) -> int:
    return int(server.rpartition(":")[2])


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    work_dir = folder / "broker"
    properties = {
        "listener.name.ssl.ssl.client.auth": "required",
        "listener.name.ssl.ssl.truststore.type": "PEM",
        "listener.name.ssl.ssl.truststore.location": str(work_dir / "authority.pem"),
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    with _AdvertisedElsewhere(jars_of("4.3.1"), secure=True, properties=properties, work_dir=work_dir) as broker:
        create_topics(broker.bootstrap_server, NewTopic("orders", 1, 1))
        secure = broker.secure_listeners
        values = {
            "plain": broker.bootstrap_server,
            "ssl": secure.ssl,
            "sasl_plaintext": secure.sasl_plaintext,
            "sasl_ssl": secure.sasl_ssl,
            # Resolved as 127.0.0.1, which the certificate has, and not by this name.
            "sasl_ssl_by_another_name": secure.sasl_ssl.replace("localhost", "127.1"),
            "certificate": str(secure.certificate),
            "username": secure.username,
            "password": secure.password,
            "other": str(folder / "other.pem"),
            "other_key": str(folder / "other.key"),
            "front": broker.front_server,
            "both_certificates": str(folder / "both.pem"),
        }
        both = broker.certificate.read_bytes() + secure.certificate.read_bytes()
        Path(values["both_certificates"]).write_bytes(both)
        _self_signed(values["other"], values["other_key"])
        with broker.front:
            yield Guarded(broker, values, folder)


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS.keys())
@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES.keys())
def test_the_cause_is_told_after_one_try(
    guarded: Guarded, capfd: pytest.CaptureFixture[str], cause: Cause, words: tuple[str, ...]
) -> None:
    server, config = guarded.config(cause)
    before = guarded.failed_logins()

    code = run([*words, "--bootstrap-server", server, "--command-config", str(config)])

    outcome = Outcome(code, *capfd.readouterr())
    (message, hint) = outcome.err.splitlines()
    assert (outcome.exit_code, outcome.out) == (FAILED, "")
    assert (cause.said in message, cause.hint in hint) == (True, True), outcome.err
    assert "did not answer" not in outcome.err
    assert "x9secret" not in outcome.err
    if cause.is_noted:
        wait_until(partial(guarded.has_more_failed_logins, before), "the broker notes it", SECONDS)
    assert guarded.failed_logins() - before == cause.is_noted


def test_doctor_connect_says_at_which_step_it_ended(guarded: Guarded) -> None:
    for what, cause in CAUSES.items():
        server, config = guarded.config(cause)
        before = guarded.failed_logins()

        outcome = this_process(
            *("doctor", "connect", "--bootstrap-server", server, "--command-config", config, "-o", "json")
        )

        (failed,) = (one for one in outcome.document()["items"] if one["outcome"] == "failed")
        assert (outcome.exit_code, failed["step"]) == (FAILED, cause.step), (what, outcome.out)
        assert (cause.said in failed["found"], cause.hint in failed["nextStep"]) == (True, True), (what, failed)
        if cause.is_noted:
            wait_until(partial(guarded.has_more_failed_logins, before), "the broker notes it", SECONDS)


def test_doctor_connect_shows_the_certificate_that_it_does_not_trust(guarded: Guarded) -> None:
    server, config = guarded.config(CAUSES["authority"])

    steps = this_process(
        *("doctor", "connect", "--bootstrap-server", server, "--command-config", config, "-o", "json")
    ).document()["items"]

    (tls,) = (one for one in steps if one["step"] == "tls")
    (own,) = tls["evidence"]["chain"]
    assert (own["subject"], own["names"]) == ("CN=localhost", ["localhost", "127.0.0.1"])


@pytest.mark.parametrize(("days", "outcome", "said"), [(-1, "failed", "is not valid now"), (3, "attention", "ends ")])
def test_doctor_connect_sees_when_certificates_end(tmp_path: Path, days: int, outcome: str, said: str) -> None:
    pem = self_signed("localhost", datetime.now(UTC) + timedelta(days=days), tmp_path)
    config = tmp_path / "client.properties"
    config.write_text(f"security.protocol=SSL\nssl.ca.location={pem}\nrequest.timeout.ms=1000\n")
    with TokenIssuer(pem) as https:
        steps = this_process(
            *("doctor", "connect", "--bootstrap-server", https.url.removeprefix("https://")),
            *("--command-config", config, "-o", "json"),
        ).document()["items"]

    seen = {one["step"]: one for one in steps}
    assert (seen["tls"]["outcome"], said in seen["tls"]["found"]) == (outcome, True), seen["tls"]
    # It is a server of HTTP, which is seen where TLS does not end it.
    assert seen["versions"]["outcome"] == ("not-tried" if outcome == "failed" else "failed")


def test_doctor_connect_reaches_brokers_where_they_are_advertised(guarded: Guarded) -> None:
    plain = guarded.values["plain"]

    for server in (plain, plain.replace("localhost", "127.0.0.1")):
        steps = this_process("doctor", "connect", "--bootstrap-server", server, "-o", "json").document()["items"]

        (brokers,) = (one for one in steps if one["step"] == "brokers")
        assert (brokers["outcome"], brokers["evidence"]) == ("ok", {"brokerIds": [1]})


def test_doctor_connect_names_a_broker_that_is_not_where_it_is_advertised(guarded: Guarded) -> None:
    # Also one that was tried as a bootstrap server.
    for servers in ("{sasl_plaintext}", f"{{sasl_plaintext}},{ELSEWHERE}"):
        server, config = guarded.config(Cause(servers, SASL_PLAIN | SCRAM, "", ""))

        outcome = this_process(
            *("doctor", "connect", "--bootstrap-server", server, "--command-config", config, "-o", "json")
        )

        (failed,) = (one for one in outcome.document()["items"] if one["step"] == "brokers")
        assert (outcome.exit_code, failed["outcome"], failed["subject"]) == (FINDINGS, "failed", ELSEWHERE)
        assert failed["evidence"] == {"brokerId": 1, "failedStep": "name"}
        assert "advertised.listeners" in failed["nextStep"]


def test_doctor_connect_tells_what_a_broker_that_it_reaches_needs(guarded: Guarded) -> None:
    server, config = guarded.config(TRUSTING_BOTH)

    outcome = this_process(
        *("doctor", "connect", "--bootstrap-server", server, "--command-config", config, "-o", "json")
    )

    steps = outcome.document()["items"]
    (told,) = (one for one in steps if one["outcome"] == "attention")
    assert (outcome.exit_code, told["subject"], told["step"]) == (FINDINGS, guarded.values["front"], "tls")
    assert [one["outcome"] for one in steps if one["step"] == "brokers"] == ["ok"]


def test_who_writes_or_asks_for_topics_by_id_is_told_after_one_try(guarded: Guarded) -> None:
    server, config = guarded.config(CAUSES["password"])
    before = guarded.failed_logins()

    with (
        closing(MetadataProducer(server, config)) as producer,
        pytest.raises(TieredctlError, match="refused the user or the password"),
    ):
        producer.publish(0, [started(1, 0, 9)])
    with closing(TopicsById(server, config)) as topics:
        answers, told = topics.ask([TOPIC_ID]), topics.describe()

    wait_until(lambda: guarded.failed_logins() - before == 2, "the broker notes both", SECONDS)
    assert answers == {TOPIC_ID: None}
    assert "refused the user or the password" in str(told["unanswered"])


def test_of_several_servers_one_that_answers_is_enough(guarded: Guarded, capfd: pytest.CaptureFixture[str]) -> None:
    codes = [
        run([*words, "--bootstrap-server", f"localhost:1,{guarded.values['plain']}"]) for words in COMMANDS.values()
    ]

    assert 1 not in codes, capfd.readouterr().err


def test_doctor_connect_ends_in_an_outcome_wherever_tls_breaks(guarded: Guarded) -> None:
    server, config = guarded.config(TRUSTING_BOTH)
    signed_in: list[int] = []

    for records in range(1, RECORDS):
        with TornTls(port_of(server), records) as torn:
            outcome = this_process(
                *("doctor", "connect", "--bootstrap-server", f"localhost:{torn.port}", "--command-config", config),
                *("-o", "json"),
            )

        seen = {one["step"]: one["outcome"] for one in outcome.document()["items"]}
        if seen["sign-in"] == "ok":
            signed_in.append(outcome.exit_code)
        else:
            assert (outcome.exit_code, "failed" in seen.values()) == (FAILED, True), (records, outcome.out)

    # The last ones tell all that is asked.
    assert set(signed_in) == {INCOMPLETE, FINDINGS}


def _self_signed(certificate: str, key: str) -> None:
    openssl = shutil.which("openssl")
    assert openssl is not None
    words = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "5", "-subj", "/CN=other")
    subprocess.run([openssl, *words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
