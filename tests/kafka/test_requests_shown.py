"""`-v` and `--debug` against a real broker: what it was asked, and nothing of the user's login."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.kafka.test_live_topic import command_config
from tests.rigs.broker import KafkaBroker
from tests.rigs.driven_brokers import DrivenBroker

pytestmark = pytest.mark.integration


@pytest.fixture
def broker(kafka_4: DrivenBroker) -> KafkaBroker:
    return kafka_4.broker


def test_each_request_is_shown_with_its_broker_place_and_time(broker: KafkaBroker, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("-v", "metadata", "stats", "--bootstrap-server", broker.bootstrap_server)

    assert outcome.exit_code == 0
    for shown in (
        rf"kafka  {broker.bootstrap_server}: connect by PLAINTEXT: ",
        r"kafka  broker \d+: Metadata",
        r"kafka  broker \d+: ListOffsets __remote_log_metadata \(\d+ partitions\): ",
        r"kafka  broker \d+: Fetch __remote_log_metadata-\d+ from 0: \d+ bytes, ",
    ):
        assert re.search(shown, outcome.err), outcome.err
    assert re.search(r"^broker \d+ was asked \d+ times, and took \d+\.\d ms\.$", outcome.err, re.MULTILINE)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_the_login_is_in_no_log(broker: KafkaBroker, tieredctl: Tieredctl, tmp_path: Path, mechanism: str) -> None:
    secure = broker.secure_listeners
    config = command_config(tmp_path, broker, secure.password, mechanism)

    outcome = tieredctl(
        *("--debug", "metadata", "stats", "--bootstrap-server", secure.sasl_ssl, "--command-config", config)
    )

    assert outcome.exit_code == 0
    assert "kafka.net" in outcome.err
    assert secure.password not in outcome.err
    assert not re.search(r"Sasl(Handshake|Authenticate)|auth_bytes=b", outcome.err)
