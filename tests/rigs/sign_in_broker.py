"""One real broker with every way to sign in: passwords, tokens, tickets and certificates."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .access_rules import OPEN_UNTIL_RULES
from .broker import KafkaBroker
from .kerberos import REALM, KeyDistributionCentre
from .maven import QUICK_JAVA, KafkaJars, java_command
from .token_issuer import AUDIENCE, ISSUER, TokenIssuer

OPERATOR = f"operator@{REALM}"
STORE_PASSWORD = "store-password"
_STORES = Path(__file__).parents[1] / "captures" / "key-stores"
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
_LISTENER = "listener.name.sasl_ssl"
_BEARER = f"{_LISTENER}.oauthbearer"


class _Broker(KafkaBroker):
    def __init__(self, jars: KafkaJars, properties: dict[str, str], options: list[str], work_dir: Path) -> None:
        super().__init__(jars, secure=True, properties=properties, work_dir=work_dir)
        self._options = options

    def _class_options(self) -> list[str]:
        return [*super()._class_options(), *self._options]


@dataclass(frozen=True)
class SignInBroker:
    """A broker whose listener SASL_SSL takes PLAIN, SCRAM, OAUTHBEARER and GSSAPI, and whose listener SSL takes clients
    of the authority in `tests/captures/key-stores`. Stores made by `keytool` hold its certificate. Everybody who signs
    in may do all, until a test makes rules."""

    broker: KafkaBroker
    issuer: TokenIssuer
    https_issuer: TokenIssuer
    kdc: KeyDistributionCentre
    keytab: Path
    tickets: Path
    trust_pkcs12: Path
    trust_jks: Path

    def failed_logins(self) -> int:
        return self.broker.server_log.read_text(errors="replace").count("ailed authentication")


@contextmanager
def sign_in_broker(jars: KafkaJars, folder: Path) -> Iterator[SignInBroker]:
    """Starts all of it. Raises RigMissing."""
    work_dir = folder / "broker"
    with ExitStack() as stack:
        issuer = stack.enter_context(TokenIssuer())
        kdc = stack.enter_context(KeyDistributionCentre(folder / "kdc"))
        service, keytab = kdc.keytab("kafka/localhost"), kdc.keytab("operator")
        properties = {
            **OPEN_UNTIL_RULES,
            f"{_LISTENER}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER,GSSAPI",
            f"{_BEARER}.sasl.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required;",
            f"{_BEARER}.sasl.server.callback.handler.class": f"{_OAUTH}.OAuthBearerValidatorCallbackHandler",
            f"{_BEARER}.connections.max.reauth.ms": "3600000",
            "sasl.oauthbearer.jwks.endpoint.url": f"{issuer.url}/keys",
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.clock.skew.seconds": "0",
            f"{_LISTENER}.gssapi.sasl.jaas.config": (
                "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
                f'keyTab="{service}" principal="kafka/localhost@{REALM}";'
            ),
            "sasl.kerberos.service.name": "kafka",
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.ssl.ssl.truststore.type": "JKS",
            "listener.name.ssl.ssl.truststore.location": str(_STORES / "trust.jks"),
            "listener.name.ssl.ssl.truststore.password": "storepass",
        }
        options = [
            f"-Djava.security.krb5.conf={kdc.config}",
            f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.url}/keys",
        ]
        broker = stack.enter_context(_Broker(jars, properties, options, work_dir))
        certificate = broker.secure_listeners.certificate
        trust = {kind: _trust_store(folder, kind, certificate) for kind in ("PKCS12", "JKS")}
        https_issuer = stack.enter_context(TokenIssuer(work_dir / "localhost.pem", issuer.key))
        yield SignInBroker(
            *(broker, issuer, https_issuer, kdc, keytab, kdc.tickets(keytab, "operator")),
            *(trust["PKCS12"], trust["JKS"]),
        )


def _trust_store(folder: Path, kind: str, certificate: Path) -> Path:
    store = folder / f"trust.{kind.lower()}"
    words = ["-importcert", "-noprompt", "-alias", "broker", "-file", str(certificate), "-storetype", kind]
    words += ["-keystore", str(store), "-storepass", STORE_PASSWORD]
    quick = [f"-J{option}" for option in QUICK_JAVA]
    subprocess.run([java_command("keytool"), *quick, *words], check=True, capture_output=True, timeout=300)
    return store
