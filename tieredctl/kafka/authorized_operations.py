"""What a cluster says that its user may do (KIP-430), asked on one connection. Nothing is changed, and no name is made.

For topics and groups of any name, it asks about a name that nobody uses: an authorizer answers before anything is
looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from tieredctl.kafka.server_connection import ServerConnection
from tieredctl.ports.connection_steps import AllowedOperations
from tieredctl.ports.metadata_source import METADATA_TOPIC

_OPERATIONS = {
    3: "Read",
    4: "Write",
    5: "Create",
    6: "Delete",
    7: "Alter",
    8: "Describe",
    9: "ClusterAction",
    10: "DescribeConfigs",
    11: "AlterConfigs",
    12: "IdempotentWrite",
}
"""The operations by number: org.apache.kafka.common.acl.AclOperation."""
_NOBODYS_NAME = "tieredctl-doctor-connect-"
_TOPIC_DENIED, _GROUP_DENIED, _CLUSTER_DENIED = 29, 30, 31
_UNKNOWN_TOPIC = 3
_FIRST_METADATA_WITH_OPERATIONS, _LAST_METADATA = 8, 12
_NO_ANSWER = -1
_NOT_TOLD = 31
"""The bit of a server that does not tell operations, though it knows the question."""
_TOPIC, _BROKER = 2, 4
"""ConfigResource.Type."""


def allowed_operations(connection: ServerConnection) -> AllowedOperations:
    """Asks a server that accepted the client. Raises Unreachable where it stops answering."""
    any_name = _NOBODYS_NAME + uuid4().hex
    topics = _topics(connection, None)
    return AllowedOperations(
        metadata_topic=_metadata_topic(connection),
        topics=topics and {name: named for name, named in topics.items() if not name.startswith("__")},
        any_topic=_any_topic(connection, any_name),
        cluster=_cluster(connection),
        any_group=_any_group(connection, any_name),
    )


def _metadata_topic(connection: ServerConnection) -> frozenset[str] | None:
    answered = _topics(connection, [METADATA_TOPIC])
    return None if answered is None else answered.get(METADATA_TOPIC)


def _any_topic(connection: ServerConnection, name: str) -> frozenset[str] | None:
    answered = _topics(connection, [name])
    settings = _config_error(connection, _TOPIC, name)
    if answered is None or name not in answered or settings not in (_TOPIC_DENIED, _UNKNOWN_TOPIC):
        return None
    # None: nobody has the name, so the user may know that.
    describes = {"Describe"} if answered[name] is None else set()
    return frozenset(describes | ({"DescribeConfigs"} if settings == _UNKNOWN_TOPIC else set()))


def _topics(connection: ServerConnection, names: list[str] | None) -> dict[str, frozenset[str] | None] | None:
    """The operations on these topics, or on all that the user may see: none where it may not even see one, and None
    where there is no such topic, or that is not told. None where the server is too old to tell."""
    from kafka.protocol.metadata import MetadataRequest

    version = _version(connection, MetadataRequest, _LAST_METADATA)
    if version < _FIRST_METADATA_WITH_OPERATIONS:
        return None
    named = names and [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(
        topics=named, allow_auto_topic_creation=False, include_topic_authorized_operations=True, version=version
    )
    answered = {_TOPIC_DENIED: frozenset[str](), _UNKNOWN_TOPIC: None}
    return {
        topic.name: answered[topic.error_code] if topic.error_code in answered else _named(topic)
        for topic in connection.answer_to(request).topics
    }


def _cluster(connection: ServerConnection) -> Mapping[str, bool]:
    from kafka.protocol.admin import DescribeClusterRequest

    version = _version(connection, DescribeClusterRequest, 0)
    operations: dict[str, bool] = {}
    if version >= 0:
        request = DescribeClusterRequest(include_cluster_authorized_operations=True, version=version)
        named = _named(connection.answer_to(request))
        if named:
            operations = {one: one in named for one in _OPERATIONS.values()}
        elif named is not None:  # Nothing else is told to who may not describe the cluster.
            operations = {"Describe": False}
    settings = _config_error(connection, _BROKER, "")
    if "DescribeConfigs" not in operations and settings in (0, _CLUSTER_DENIED):
        operations["DescribeConfigs"] = settings == 0
    return operations


def _any_group(connection: ServerConnection, name: str) -> frozenset[str] | None:
    """Whoever coordinates the group: who may not describe it is told so first."""
    from kafka.protocol.admin import DescribeGroupsRequest

    version = _version(connection, DescribeGroupsRequest, 4)
    if version < 0:
        return None
    request = DescribeGroupsRequest(groups=[name], include_authorized_operations=False, version=version)
    codes = [group.error_code for group in connection.answer_to(request).groups]
    return None if not codes else frozenset() if _GROUP_DENIED in codes else frozenset({"Describe"})


def _config_error(connection: ServerConnection, kind: int, name: str) -> int:
    """The error of a question about one setting."""
    from kafka.protocol.admin import DescribeConfigsRequest

    version = _version(connection, DescribeConfigsRequest, 2)
    if version < 1:
        return _NO_ANSWER
    resources = DescribeConfigsRequest.DescribeConfigsResource
    asked = [resources(resource_type=kind, resource_name=name, configuration_keys=["retention.ms"])]
    request = DescribeConfigsRequest(resources=asked, include_synonyms=False, version=version)
    return next((int(one.error_code) for one in connection.answer_to(request).results), _NO_ANSWER)


def _version(connection: ServerConnection, request: Any, last: int) -> int:
    """The newest version of a request up to `last` that server and client know; -1 without one."""
    first_known, last_known = connection.versions.get(request.API_KEY, (0, -1))
    version = min(last, last_known, request.max_version)
    return version if version >= first_known else -1


def _named(answered: Any) -> frozenset[str] | None:
    bits = answered.authorized_operations
    return None if _NOT_TOLD in bits else frozenset(_OPERATIONS[bit] for bit in bits if bit in _OPERATIONS)
