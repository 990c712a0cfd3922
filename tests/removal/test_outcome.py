"""What a command that changes something says is left, whatever kind of outcome it has."""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl.errors import ExitCode
from tieredctl.ops.change import Outcome, OutcomeByPartition


@dataclass(slots=True, kw_only=True)
class _Settled(Outcome):
    skipped_are_settled = True


def test_what_was_skipped_is_left_of_every_kind_of_outcome_that_does_not_say_otherwise() -> None:
    for outcome in (
        Outcome(skipped=2, failed=1),
        OutcomeByPartition[Outcome](skipped=2, partitions=[Outcome(failed=3)]),
    ):
        assert (outcome.left, outcome.exit_code) == (3, ExitCode.INCOMPLETE)
    settled = _Settled(skipped=2)
    assert (settled.left, settled.exit_code) == (0, ExitCode.CLEAN)
