"""Keys explained many at a time are explained as the layout explains each."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tieredctl.layouts.registry import layout_named
from tieredctl.ops.remote.key_columns import KeyExplainer
from tieredctl.ports.layout import ExplainedKey, Layout

LAYOUTS = {
    "local": layout_named("local"),
    "aiven": layout_named("aiven", {"key-prefix": "tiered/"}),
    "hdfs": layout_named("hdfs"),
}
IDS = st.sampled_from(
    ["Ex-aw3fEQIi3do0H9Y7cKQ", "_3fEQIi3do0H9Y7cKQEx-A", "Ex-aw3fEQIi3do0H9Y7cKZ", "Ex-aw3fEQIi3do0H9Y7cK", "é" * 22]
)
OFFSETS = st.one_of(
    st.integers(0, 10**20 - 1).map("{:020}".format), st.integers(0, 99).map(str), st.just("0" * 19 + "x")
)
TOPICS = st.sampled_from(["orders", "a-b.c_d", "t-0", "-", "ü", ""])
PARTITIONS = st.sampled_from(["0", "7", "07", "4294967296", "x"])
SUFFIXES = st.sampled_from([".log", ".index", ".indexes", ".rsm-manifest", ".timeindex", ".log.bak", "", ".LOG"])
LOCAL_KEYS = st.builds("{}-{}-{}/{}-{}{}".format, TOPICS, PARTITIONS, IDS, OFFSETS, IDS, SUFFIXES)
AIVEN_KEYS = st.builds(
    "{}{}-{}/{}/{}-{}{}".format, st.sampled_from(["tiered/", "", "x"]), TOPICS, IDS, PARTITIONS, OFFSETS, IDS, SUFFIXES
)
HDFS_KEYS = st.builds("{}-{}-{}/{}".format, TOPICS, PARTITIONS, IDS, IDS)
KEYS = st.lists(st.one_of(LOCAL_KEYS, AIVEN_KEYS, HDFS_KEYS, st.text(max_size=70)), max_size=12)


def explained_together(layout: Layout, keys: list[str]) -> list[ExplainedKey | None]:
    data = [key.encode("utf-8", "surrogateescape") for key in keys]
    said = KeyExplainer(layout).explain(pa.array(data, pa.binary()))
    found = []
    for row in range(len(keys)):
        stem = said.explained[int(said.stems[row])]
        segment_id = bytes(said.segment_ids[row]).decode("ascii") if stem else ""
        found.append(stem and stem._replace(start_offset=int(said.start_offsets[row]), segment_id=segment_id))
    return found


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=examples(500))
@given(keys=KEYS)
def test_many_keys_are_explained_as_each_is(name: str, keys: list[str]) -> None:
    layout = LAYOUTS[name]
    keys = [key for key in keys if key.isprintable()]
    assert explained_together(layout, keys) == [layout.explain(key) for key in keys]


@pytest.mark.parametrize("offset", [2**63 - 1, 2**63, 10**20 - 1, 10**19, 92233720368 * 10**8, 922337203 * 10**10])
def test_offsets_around_the_greatest(offset: int) -> None:
    key = f"orders-0-Ex-aw3fEQIi3do0H9Y7cKQ/{offset:020}-Ex-aw3fEQIi3do0H9Y7cKQ.log"
    assert explained_together(LAYOUTS["local"], [key]) == [LAYOUTS["local"].explain(key)]
