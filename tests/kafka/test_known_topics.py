"""A topic that only the cluster knows is known: it may have nothing in remote storage yet."""

from __future__ import annotations

import pytest

from tests.cli.command_line import this_process
from tests.rigs.driven_brokers import DrivenBroker
from tieredctl.errors import ExitCode

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("verb", ["segments", "format", "stuck"])
def test_a_topic_without_events_is_clean_and_an_unknown_one_is_not(verb: str, kafka_4: DrivenBroker) -> None:
    where = ("--bootstrap-server", kafka_4.broker.bootstrap_server)

    live = this_process("metadata", verb, "--topic", "untiered", *where)
    mistyped = this_process("metadata", verb, "--topic", "untierd", *where)
    no_partition = this_process("metadata", verb, "--topic", "untiered", "--partition", "99", *where)

    assert (live.exit_code, live.out) == (ExitCode.CLEAN, "")
    assert (mistyped.exit_code, "Did you mean untiered?" in mistyped.err) == (ExitCode.USAGE, True), mistyped.err
    assert no_partition.exit_code == ExitCode.USAGE
