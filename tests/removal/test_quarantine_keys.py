"""The key of a copy tells whose it is, which plan removed it, and what it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tieredctl.ops.guards.own_objects import QUARANTINE
from tieredctl.ops.guards.quarantine_keys import Quarantined, quarantine_key, quarantined
from tieredctl.ports.object_store import StoredObject

TEXTS = st.text(min_size=1)
PLAN_ID = "11112222333344445555666677778888"


@given(cluster_id=TEXTS, key=TEXTS, size=st.integers(0, 1 << 50), ms=st.integers(-(10**15), 10**15), version=st.text())
def test_all_of_it_is_found_again(cluster_id: str, key: str, size: int, ms: int, version: str) -> None:
    name = quarantine_key(cluster_id, PLAN_ID, StoredObject(key, size, ms, version))

    known = None if cluster_id == "-" else cluster_id
    assert quarantined(name) == Quarantined(PLAN_ID, key, known, size, ms, version or None)


def test_keys_that_are_no_text_are_found_again_too() -> None:
    name = quarantine_key("c", PLAN_ID, StoredObject("a/\udcff~1~2~3", 1, 2, "~\udcfe/"))
    found = quarantined(name)
    assert found is not None
    assert found.key == "a/\udcff~1~2~3"


@given(plan_id=st.uuids().map(lambda one: one.hex), key=TEXTS)
def test_older_releases_told_the_plan_alone(plan_id: str, key: str) -> None:
    assert quarantined(f"{QUARANTINE}{plan_id}/{key}") == Quarantined(plan_id, key)


@given(st.text())
def test_whatever_else_lies_there_is_not_an_error(text: str) -> None:
    for place in ("", "clusters/", "clusters/c/", "clusters/c/p/"):
        quarantined(f"{QUARANTINE}{place}{text}")
