"""Who may do what on a broker that has an authorizer: the user of its guarded listeners has what is granted here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from .broker import KafkaBroker
from .topics import answered
from .waiting import wait_until

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""A broker's properties: its plain listener may do all, and other users what they are granted."""


_VISITOR = "visitor"


class Rule(NamedTuple):
    """An operation on something that is allowed."""

    kind: ResourceType
    name: str
    operation: AclOperation


@contextmanager
def allowed(broker: KafkaBroker, folder: Path, rules: Sequence[Rule]) -> Iterator[Path]:
    """The client properties of a user who may do this and nothing else, and who is gone afterwards."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
    mechanism = ScramMechanism.SCRAM_SHA_512
    password = broker.secure_listeners.password.encode()
    visitor = UserScramCredentialUpsertion(_VISITOR, ScramCredentialInfo(mechanism, 4096), password)
    answered(lambda: admin.alter_user_scram_credentials([visitor])[_VISITOR].result(timeout=30))
    bindings = [_binding(_VISITOR, *rule) for rule in rules]
    user, anything = f"User:{_VISITOR}", (ResourceType.ANY, None, ResourcePatternType.ANY)
    of_visitor = AclBindingFilter(*anything, user, None, AclOperation.ANY, AclPermissionType.ANY)  # type: ignore[arg-type]

    def known() -> int:
        return len(answered(lambda: admin.describe_acls(of_visitor).result(timeout=30)))

    try:
        answered(lambda: [made.result(timeout=30) for made in admin.create_acls(bindings).values()])
        wait_until(lambda: known() == len(bindings), "the rules are known", 30)
        yield scram_config(folder, broker, _VISITOR)
    finally:
        answered(lambda: admin.delete_acls([of_visitor])[of_visitor].result(timeout=30))
        gone = UserScramCredentialDeletion(_VISITOR, mechanism)
        admin.alter_user_scram_credentials([gone])[_VISITOR].result(timeout=30)
        wait_until(lambda: known() == 0, "the rules are gone", 30)


OPEN_UNTIL_RULES = {**AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
"""A broker's properties: everybody may do all until there is a rule."""
_EVERYTHING = ((ResourceType.TOPIC, "*"), (ResourceType.GROUP, "*"), (ResourceType.BROKER, "kafka-cluster"))


@contextmanager
def nothing_else_allowed(broker: KafkaBroker, users: Sequence[str], rules: Sequence[Rule]) -> Iterator[None]:
    """On a broker of OPEN_UNTIL_RULES these users may do this and nothing else meanwhile, and nobody anything."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
    closing = [_binding("nobody", kind, name, AclOperation.ALTER) for kind, name in _EVERYTHING]
    bindings = [*closing, *(_binding(user, *rule) for user in users for rule in rules)]
    anything = (ResourceType.ANY, None, ResourcePatternType.ANY, None, None)
    every = AclBindingFilter(*anything, AclOperation.ANY, AclPermissionType.ANY)  # type: ignore[arg-type]

    def known() -> int:
        return len(answered(lambda: admin.describe_acls(every).result(timeout=30)))

    try:
        answered(lambda: [made.result(timeout=30) for made in admin.create_acls(bindings).values()])
        wait_until(lambda: known() == len(bindings), "the rules are known", 30)
        yield
    finally:
        answered(lambda: admin.delete_acls([every])[every].result(timeout=30))
        wait_until(lambda: known() == 0, "the rules are gone", 30)


def scram_config(folder: Path, broker: KafkaBroker, user: str | None = None) -> Path:
    """Client properties as Kafka's own tools take them, for the listener SASL_SSL; all users have one password."""
    secure = broker.secure_listeners
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    file = folder / "client.properties"
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={module} required username="{user or secure.username}" password="{secure.password}";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={secure.certificate}\n"
    )
    return file


def grant(broker: KafkaBroker, topic: str, operation: AclOperation) -> None:
    """Allows the user an operation on a topic; returns once the broker knows."""
    _allow(broker, ResourceType.TOPIC, topic, operation)


def grant_on_cluster(broker: KafkaBroker, operation: AclOperation) -> None:
    """The same on the cluster."""
    _allow(broker, ResourceType.BROKER, "kafka-cluster", operation)


def _allow(broker: KafkaBroker, kind: ResourceType, name: str, operation: AclOperation) -> None:
    rule = _binding(broker.secure_listeners.username, kind, name, operation)
    known = AclBindingFilter(
        kind, name, ResourcePatternType.LITERAL, rule.principal, "*", operation, AclPermissionType.ALLOW
    )
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
    answered(lambda: admin.create_acls([rule])[rule].result(timeout=30))
    wait_until(lambda: bool(answered(lambda: admin.describe_acls(known).result(timeout=30))), "the rule is known", 30)


def _binding(user: str, kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    who = (f"User:{user}", "*", operation, AclPermissionType.ALLOW)
    return AclBinding(kind, name, ResourcePatternType.LITERAL, *who)
