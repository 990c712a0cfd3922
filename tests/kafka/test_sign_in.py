"""Every way to sign in, on one real broker: with the right secret, a wrong one, and tokens that end meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import this_process
from tests.documentation.test_security_page import ROWS, Row
from tests.metadata_logs import started
from tests.rigs.access_rules import Rule, nothing_else_allowed
from tests.rigs.availability import rig_unavailable
from tests.rigs.driven_brokers import jars_of
from tests.rigs.prerequisites import RigMissing
from tests.rigs.renewed_token import SHORT, RenewedFile
from tests.rigs.secure_listeners import PASSWORD, USERNAME
from tests.rigs.sign_in_broker import OPERATOR, STORE_PASSWORD, SignInBroker, sign_in_broker
from tests.rigs.token_issuer import CLIENT, SECRET
from tests.rigs.topics import create_topics
from tests.rigs.waiting import wait_until
from tests.shares import divided
from tieredctl.cli.main import run
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.kafka_python_producer import KafkaPythonProducer
from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.kafka.metadata_producer import metadata_producer
from tieredctl.kafka.sign_in.gssapi import SecurityContext

pytestmark = pytest.mark.integration

STORES = Path(__file__).parents[1] / "captures" / "key-stores"
FAILED, SECONDS = 1, 30
SERVER_STEPS = ("name", "tcp", "tls", "versions", "sign-in", "brokers")
PRINCIPALS = (USERNAME, OPERATOR.partition("@")[0], "CN=client")
"""Who signs in by passwords, by tokens and tickets, and by a certificate."""
IMPLIED = {
    AclOperation.READ: (AclOperation.DESCRIBE,),
    AclOperation.ALTER_CONFIGS: (AclOperation.DESCRIBE_CONFIGS,),
}
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}
TOKENS = "sasl.oauthbearer.token.endpoint.url"
KAFKAS = (
    "sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
)
STRIMZIS = "sasl.login.callback.handler.class=io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class=org.apache.kafka.common.security.oauthbearer"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignInBroker]:
    with pytest.MonkeyPatch.context() as patch:
        try:
            with sign_in_broker(jars_of("4.3.1"), tmp_path_factory.mktemp("sign-in")) as made:
                for name, value in made.kdc.environment.items():
                    patch.setenv(name, value)
                yield made
        except RigMissing as missing:
            rig_unavailable(str(missing))


def sasl(rig: SignInBroker, mechanism: str, options: str, *more: str) -> list[str]:
    return [
        "security.protocol=SASL_SSL",
        f"ssl.truststore.location={rig.trust_pkcs12}",
        f"ssl.truststore.password={STORE_PASSWORD}",
        f"sasl.mechanism={mechanism}",
        f"sasl.jaas.config={MODULES[mechanism]} required {options};",
        *more,
    ]


def password(rig: SignInBroker, mechanism: str, secret: str = PASSWORD) -> list[str]:
    return sasl(rig, mechanism, f'username="{USERNAME}" password="{secret}"')


def client(rig: SignInBroker, url: str, secret: str = SECRET) -> list[str]:
    return sasl(
        rig, "OAUTHBEARER", f'clientId="{CLIENT}" clientSecret="{secret}" scope="a"', f"{TOKENS}={url}/token", KAFKAS
    )


def strimzi(rig: SignInBroker, secret: str = SECRET) -> list[str]:
    trust = f'oauth.ssl.truststore.location="{rig.trust_jks}" oauth.ssl.truststore.password="{STORE_PASSWORD}"'
    options = f'oauth.token.endpoint.uri="{rig.https_issuer.url}/token" oauth.client.id="{CLIENT}"'
    return sasl(rig, "OAUTHBEARER", f'{options} oauth.client.secret="{secret}" {trust}', STRIMZIS)


def token_file(rig: SignInBroker, folder: Path, token: str) -> list[str]:
    file = folder / f"{len(list(folder.iterdir()))}.token"
    file.write_text(f"{token}\n")
    return sasl(rig, "OAUTHBEARER", "", f"{TOKENS}=file:{file}", KAFKAS)


def assertion(rig: SignInBroker, folder: Path, key: str) -> list[str]:
    (folder / "key.pem").write_text(key)
    claims = "sasl.oauthbearer.assertion"
    return sasl(
        rig, "OAUTHBEARER", "", f"{TOKENS}={rig.issuer.url}/token", KAFKAS, f"{RETRIEVER}.JwtBearerJwtRetriever",
        f"{claims}.private.key.file={folder / 'key.pem'}", f"{claims}.claim.sub={CLIENT}", f"{claims}.claim.iss=us",
    )  # fmt: skip


def assertion_file(rig: SignInBroker, file: Path) -> list[str]:
    retriever = f"{RETRIEVER}.JwtBearerJwtRetriever"
    where = f"sasl.oauthbearer.assertion.file={file}"
    return sasl(rig, "OAUTHBEARER", "", f"{TOKENS}={rig.issuer.url}/token", KAFKAS, retriever, where)


def kerberos(rig: SignInBroker, principal: str = OPERATOR) -> list[str]:
    options = f'useKeyTab=true storeKey=true keyTab="{rig.keytab}" principal="{principal}"'
    return sasl(rig, "GSSAPI", options, "sasl.kerberos.service.name=kafka")


def tickets(rig: SignInBroker, service: str = "kafka") -> list[str]:
    options = f'useTicketCache=true ticketCache="{rig.tickets}"'
    return sasl(rig, "GSSAPI", options, f"sasl.kerberos.service.name={service}")


def certificate(rig: SignInBroker, kind: str) -> list[str]:
    return [
        "security.protocol=SSL",
        f"ssl.truststore.location={rig.trust_jks}",
        f"ssl.truststore.password={STORE_PASSWORD}",
        f"ssl.keystore.location={STORES / f'key.{kind}'}",
        "ssl.keystore.password=storepass",
        *(["ssl.key.password=keypass"] if kind == "jks" else []),
    ]


def right(rig: SignInBroker, folder: Path) -> dict[str, list[str]]:
    return {
        "PLAIN": password(rig, "PLAIN"),
        "SCRAM": password(rig, "SCRAM-SHA-512"),
        "client credentials": client(rig, rig.issuer.url),
        "client credentials by TLS": client(rig, rig.https_issuer.url),
        "Strimzi": strimzi(rig),
        "token in a file": token_file(rig, folder, rig.issuer.token(600)),
        "assertion": assertion(rig, folder, rig.issuer.private_key_pem()),
        "keytab": kerberos(rig),
        "tickets": tickets(rig),
        "certificate in JKS": certificate(rig, "jks"),
        "certificate in PKCS12": certificate(rig, "p12"),
    }


def wrong(rig: SignInBroker, folder: Path) -> dict[str, tuple[list[str], bool]]:
    """By what is wrong: the properties, and whether a broker hears of it."""
    return {
        "PLAIN": (password(rig, "PLAIN", "x9secret"), True),
        "SCRAM": (password(rig, "SCRAM-SHA-512", "x9secret"), True),
        "client credentials": (client(rig, rig.issuer.url, "x9secret"), False),
        "Strimzi": (strimzi(rig, "x9secret"), False),
        "token of another audience": (token_file(rig, folder, rig.issuer.token(600, aud="other")), True),
        "token that ended": (token_file(rig, folder, rig.issuer.token(-1)), False),
        "assertion": (assertion(rig, folder, (STORES / "key.pem").read_text()), False),
        "principal": (kerberos(rig, "nobody@TEST.INVALID"), False),
        "service": (tickets(rig, "other"), False),
    }


def config(folder: Path, lines: list[str]) -> Path:
    file = folder / "client.properties"
    file.write_text("\n".join(["request.timeout.ms=20000", *lines]))
    return file


def server(rig: SignInBroker, lines: list[str]) -> str:
    listeners = rig.broker.secure_listeners
    return listeners.ssl if lines[0].endswith("=SSL") else listeners.sasl_ssl


def test_who_shows_the_right_secret_reads_and_writes(
    rig: SignInBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for lines in right(rig, tmp_path).values():
        address, file = server(rig, lines), config(tmp_path, lines)

        code = run(["topic", "list", "--bootstrap-server", address, "--command-config", str(file)])

        assert (code, capfd.readouterr().err) == (0, ""), lines
        steps = connected("--bootstrap-server", address, "--command-config", file)
        assert {one["outcome"] for name in SERVER_STEPS for one in steps[name]} == {"ok"}, steps
        with closing(metadata_producer(address, file)) as producer:
            producer.publish(0, [started(1, 0, 9)])


def test_a_wrong_secret_is_tried_once_and_one_sentence(
    rig: SignInBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for what, (lines, is_noted) in wrong(rig, tmp_path).items():
        file, before = config(tmp_path, lines), rig.failed_logins()
        asked = len(rig.issuer.asked) + len(rig.https_issuer.asked)

        code = run(["topic", "list", "--bootstrap-server", server(rig, lines), "--command-config", str(file)])

        said = capfd.readouterr().err
        (_message, _hint) = said.splitlines()
        assert (code in (FAILED, 2), "x9secret" in said, "Traceback" in said) == (True, False, False), (what, said)
        if is_noted:
            _await_failure(rig, before)
        assert rig.failed_logins() - before == is_noted, what
        assert len(rig.issuer.asked) + len(rig.https_issuer.asked) - asked <= 1, what


def test_doctor_connect_tries_a_wrong_secret_once_and_says_where_it_ended(rig: SignInBroker, tmp_path: Path) -> None:
    for what, (lines, is_noted) in wrong(rig, tmp_path).items():
        file, before, address = config(tmp_path, lines), rig.failed_logins(), server(rig, lines)

        outcome = this_process(
            *("doctor", "connect", "--bootstrap-server", f"{address},{address}", "--command-config", file, "-o", "json")
        )

        steps = outcome.document()["items"]
        logins = [one["outcome"] for one in steps if one["step"] == "sign-in"]
        others = {one["outcome"] for one in steps if one["step"] != "sign-in"}
        assert (logins, others) == (["failed", "not-tried"], {"ok"}), (what, steps)
        assert (outcome.exit_code in (FAILED, 2), "x9secret" in outcome.out) == (True, False), (what, outcome)
        if is_noted:
            _await_failure(rig, before)
        assert rig.failed_logins() - before == is_noted, what


def test_a_broker_whose_certificate_is_not_in_the_store_is_refused(
    rig: SignInBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = [line.replace(str(rig.trust_pkcs12), str(STORES / "trust.p12")) for line in password(rig, "PLAIN")]
    file = config(tmp_path, [line.replace(STORE_PASSWORD, "storepass") for line in lines])

    code = run(["topic", "list", "--bootstrap-server", server(rig, lines), "--command-config", str(file)])

    assert (code, "is not trusted" in capfd.readouterr().err) == (FAILED, True)


@pytest.mark.parametrize(
    "mechanism", divided(["client credentials", "assertion", "assertion in a file", "token in a file"])
)
def test_tokens_that_end_in_the_middle_of_a_run_are_fetched_again(
    rig: SignInBroker, tmp_path: Path, mechanism: str
) -> None:
    file = RenewedFile(tmp_path / "renewed", rig.issuer)
    lines = {
        "client credentials": client(rig, rig.issuer.url),
        "assertion": assertion(rig, tmp_path, rig.issuer.private_key_pem()),
        "assertion in a file": assertion_file(rig, file.path),
        "token in a file": sasl(rig, "OAUTHBEARER", "", f"{TOKENS}=file:{file.path}", KAFKAS),
    }[mechanism]
    address, settings = server(rig, lines), config(tmp_path, [*lines, "client.id=short"])
    rig.issuer.seconds, before = SHORT, rig.issuer.issued
    try:
        with (
            closing(LiveCluster(address, settings)) as cluster,
            closing(metadata_producer(address, settings)) as producer,
        ):

            def works_on() -> bool:
                file.renew_in_time()
                cluster.broker_features()
                producer.publish(0, [started(1, 0, 9)])
                is_issued = rig.issuer.issued >= before + 4 or mechanism == "token in a file"
                return is_issued and file.ended >= 3

            wait_until(works_on, "three tokens ended", SECONDS)
    finally:
        rig.issuer.seconds = 3600


def test_a_token_that_is_renewed_too_late_is_used_when_it_is_there(rig: SignInBroker, tmp_path: Path) -> None:
    file = RenewedFile(tmp_path / "renewed", rig.issuer)
    lines = sasl(rig, "OAUTHBEARER", "", f"{TOKENS}=file:{file.path}", KAFKAS)
    address, settings = server(rig, lines), config(tmp_path, lines)
    with closing(LiveCluster(address, settings)) as cluster:
        cluster.broker_features()
        wait_until(lambda: refuses(cluster), "the token ended", SECONDS)
        file.renew()

        wait_until(lambda: not refuses(cluster), "the new token is used", SECONDS)


def refuses(cluster: LiveCluster) -> bool:
    """Whether it asks nobody, since its token has ended."""
    try:
        cluster.broker_features()
    except TieredctlError as error:
        return error.code is ErrorCode.BROKER_REFUSED
    return False


def _await_failure(rig: SignInBroker, before: int) -> None:
    wait_until(lambda: rig.failed_logins() > before, "the broker notes it", SECONDS)


def test_events_are_written_by_kafka_python_where_librdkafka_has_no_kerberos(rig: SignInBroker, tmp_path: Path) -> None:
    with closing(metadata_producer("localhost:1", config(tmp_path, kerberos(rig)))) as by_tickets:
        assert isinstance(by_tickets, KafkaPythonProducer)
        with pytest.raises(TieredctlError) as refused:
            by_tickets.publish(0, [started(1, 0, 9)])

    assert refused.value.code is ErrorCode.BROKER_UNREACHABLE


@pytest.fixture(scope="module")
def topic(rig: SignInBroker) -> None:
    """Without one, nobody knows what a user may do with topics."""
    create_topics(rig.broker.bootstrap_server, NewTopic("orders", 1, 1))


@pytest.mark.usefixtures("topic")
def test_what_the_security_page_grants_is_enough_however_the_user_signs_in(rig: SignInBroker, tmp_path: Path) -> None:
    for row in (row for row in ROWS if row.commands[0] in ("metadata format", "doctor")):
        with nothing_else_allowed(rig.broker, PRINCIPALS, row.rules):
            for what, lines in divided([*right(rig, tmp_path).items()]):
                place = ("--bootstrap-server", server(rig, lines), "--command-config", config(tmp_path, lines))

                rights = connected(*place)["rights"]
                read, listed = this_process("metadata", "stats", *place), this_process("topic", "list", *place)

                outcomes = {tuple(one["evidence"]["commands"]): one["outcome"] for one in rights}
                (own,) = (outcome for commands, outcome in outcomes.items() if row.commands[0] in commands)
                (topics,) = (outcome for commands, outcome in outcomes.items() if "topic list" in commands)
                (change,) = (outcome for commands, outcome in outcomes.items() if "topic enable" in commands)
                assert (own, change, read.exit_code) == ("ok", "denied", 0), (what, rights, read.err)
                assert (topics == "ok") == (listed.exit_code == 0) == (row.commands[0] == "doctor"), (what, listed.err)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("topic")
@pytest.mark.parametrize("row", [row for row in ROWS if row.rules], ids=str)
def test_what_a_row_grants_is_all_that_a_user_has_however_it_signs_in(
    rig: SignInBroker, tmp_path: Path, row: Row
) -> None:
    has = with_implied(row.rules)
    expected = {one.commands[0]: "ok" if has.issuperset(one.rules) else "denied" for one in ROWS if one.rules}
    with nothing_else_allowed(rig.broker, PRINCIPALS, row.rules):
        for what, lines in right(rig, tmp_path).items():
            place = ("--bootstrap-server", server(rig, lines), "--command-config", config(tmp_path, lines))

            rights = connected(*place)["rights"]

            outcomes = {name: one["outcome"] for one in rights for name in one["evidence"]["commands"]}
            named = {name: outcomes[name.partition(" --")[0]] for name in expected}
            assert named == expected, what


def with_implied(rules: Iterable[Rule]) -> set[Rule]:
    """With what Kafka's authorizer takes an operation to imply."""
    return {
        rule._replace(operation=one) for rule in rules for one in (rule.operation, *IMPLIED.get(rule.operation, ()))
    }


def connected(*words: str | Path) -> Mapping[str, list[dict[str, Any]]]:
    """The steps of `doctor connect` by their names."""
    steps: dict[str, list[dict[str, Any]]] = {}
    for one in this_process("doctor", "connect", *words, "-o", "json").document()["items"]:
        steps.setdefault(one["step"], []).append(one)
    return steps


def test_a_login_that_is_left_in_the_middle_is_released(rig: SignInBroker) -> None:
    context = SecurityContext("kafka", "localhost", None, {"ccache": f"FILE:{rig.tickets}"})
    assert context.step(b"")
    release = context.close
    assert release.alive

    del context

    assert not release.alive
