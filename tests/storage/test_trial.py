"""What an unknown server honours is seen; what it refuses for other reasons is not taken for a lack of that."""

from __future__ import annotations

import pytest

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import Capability, StoredObject
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.trial import capabilities_seen

REFUSED = TieredctlError(ErrorCode.UNREADABLE, "The server refused the request (InvalidBucketName).")


class WithoutConditions(MemoryStore):
    """Whose server does not understand conditions of writes."""

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        raise REFUSED


class RefusingAll(WithoutConditions):
    """Whose server takes no object, whatever the conditions."""

    def write(self, key: str, data: bytes) -> StoredObject:
        raise REFUSED


def test_a_server_that_understands_no_condition_is_seen_to_have_none_and_nothing_is_left_in_it() -> None:
    store = WithoutConditions()

    seen = capabilities_seen(store, store)

    assert Capability.CONDITIONAL_WRITE not in seen
    assert list(store.list()) == []


def test_a_server_that_takes_no_object_at_all_is_not_said_to_lack_conditions() -> None:
    store = RefusingAll()

    with pytest.raises(TieredctlError) as refused:
        capabilities_seen(store, store)

    assert refused.value is REFUSED
