"""Each of the worst nights happens to a real broker, and its runbook mends it, with the outputs that it shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation.live_places import broker_place
from tests.documentation.pages import Story, pages, read
from tests.documentation.stories import differences
from tests.rigs.driven_brokers import jars_of
from tests.rigs.forgetful_cluster import ForgetfulCluster, forgetful_cluster

pytestmark = pytest.mark.integration

RUNBOOKS = [page for page in pages() if page.parent.name == "runbooks"]
NIGHTS = [story for page in RUNBOOKS for story in read(page)[0]]
NIGHTS.sort(key=lambda night: night.page.stem == "metadata-lost")
"""On one cluster. The last one leaves a trace: that the metadata topic does not begin at 0."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ForgetfulCluster]:
    with forgetful_cluster(jars_of("4.3.1")) as cluster:
        yield cluster


@pytest.mark.parametrize("night", NIGHTS, ids=str)
def test_a_runbook_mends_the_night_that_it_is_about(night: Story, cluster: ForgetfulCluster, tmp_path: Path) -> None:
    found = list(differences(night, broker_place(cluster.broker, tmp_path)))

    if found:
        pytest.fail("\n\n".join(found), pytrace=False)
    assert cluster.read() == list(cluster.written)
