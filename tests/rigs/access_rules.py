"""Who may do what on a broker that has an authorizer: the user of its guarded listeners has what is granted here."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from .broker import KafkaBroker
from .waiting import wait_until

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""A broker's properties: its plain listener may do all, and other users what they are granted."""


def scram_config(folder: Path, broker: KafkaBroker) -> Path:
    """Client properties as Kafka's own tools take them, for the listener SASL_SSL."""
    secure = broker.secure_listeners
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    file = folder / "client.properties"
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={module} required username="{secure.username}" password="{secure.password}";\n'
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
    user = f"User:{broker.secure_listeners.username}"
    words = (kind, name, ResourcePatternType.LITERAL, user, "*", operation)
    rule = AclBinding(*words, AclPermissionType.ALLOW)
    known = AclBindingFilter(*words, AclPermissionType.ALLOW)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
    admin.create_acls([rule])[rule].result(timeout=30)
    wait_until(lambda: bool(admin.describe_acls(known).result(timeout=30)), "the rule is known", 30)
