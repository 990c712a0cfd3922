"""`doctor connect`: what the user of a connection may do with which commands, and what all steps come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tieredctl.errors import ExitCode, worst
from tieredctl.model.command_packages import Rights, command_packages
from tieredctl.model.command_rights import OWN_RIGHTS, RIGHTS_BESIDES
from tieredctl.model.counted import counted
from tieredctl.model.result_row import camel_case
from tieredctl.ops.documents import Document
from tieredctl.ports.connection_steps import AllowedOperations, ConnectionReport, ConnectionStep, Step, StepOutcome
from tieredctl.ports.metadata_source import METADATA_TOPIC

_HINT = "docs/security.md says how to grant it, if these commands are meant to work."
_ASK_HINT = "Ask whoever grants rights on this cluster; kafka-acls --list shows them."
_OF_ANY_TOPIC = frozenset({"Describe", "DescribeConfigs"})
_NAMED_AT_MOST = 3


def all_steps(report: ConnectionReport) -> list[ConnectionStep]:
    """The steps of the connection, and then one for all commands that need the same rights."""
    if report.allowed is None or report.server is None:
        return [*report.steps]
    judged = [_step(report.allowed, rights, commands) for rights, commands in _by_rights().items()]
    return [*report.steps, *judged]


def exit_code(report: ConnectionReport, steps: list[ConnectionStep]) -> ExitCode:
    """Incomplete where something is unknown; that a user may not do everything is no finding, but that it may do
    nothing is one."""
    if report.errors:
        return worst(*(one.code.exit_code for one in report.errors))
    outcomes = {one.outcome for one in steps}
    rights = {one.outcome for one in steps if one.step is Step.RIGHTS}
    needs_attention = outcomes & {StepOutcome.FAILED, StepOutcome.ATTENTION} or rights == {StepOutcome.DENIED}
    return worst(
        ExitCode.FINDINGS if needs_attention else ExitCode.CLEAN,
        ExitCode.INCOMPLETE if StepOutcome.UNKNOWN in outcomes else ExitCode.CLEAN,
    )


def summary(report: ConnectionReport, steps: list[ConnectionStep]) -> Document:
    """How many steps have each outcome."""
    counts = Counter(step.outcome for step in steps)
    return {"accepted": not report.errors, **{camel_case(one.name.lower()): counts[one] for one in StepOutcome}}


def _by_rights() -> Mapping[Rights, list[str]]:
    grouped: dict[Rights, list[str]] = {rights: [*commands] for rights, commands in OWN_RIGHTS.items()}
    for package in command_packages():
        for words, rights in package.rights.items():
            grouped.setdefault(rights, []).append(" ".join(words))
    for rights, commands in RIGHTS_BESIDES.items():
        grouped.setdefault(rights, []).extend(commands)
    return grouped


def _step(allowed: AllowedOperations, rights: Rights, commands: list[str]) -> ConnectionStep:
    judged = _Judged([], [], [])
    judged.judge(rights.metadata_topic, allowed.metadata_topic, f"topic {METADATA_TOPIC}")
    judged.judge_topics(rights.topics, allowed)
    granted = frozenset(name for name, is_allowed in allowed.cluster.items() if is_allowed)
    for operation in rights.cluster:
        judged.judge((operation,), granted if operation in allowed.cluster else None, "the cluster")
    judged.judge(rights.groups, allowed.any_group, "groups of any name")
    evidence = {"commands": commands, "lacking": _each(judged.lacking), "unknown": _each(judged.unknown)}
    subject = ", ".join(commands[:_NAMED_AT_MOST])
    if len(commands) > _NAMED_AT_MOST:
        subject += f" and {len(commands) - _NAMED_AT_MOST} more"
    if judged.lacking:
        observation = f"the user lacks {_listed(judged.lacking)}"
        return ConnectionStep(subject, Step.RIGHTS, StepOutcome.DENIED, observation, _HINT, evidence)
    if judged.unknown:
        observation = f"the cluster does not tell whether the user has {_listed(judged.unknown)}"
        return ConnectionStep(subject, Step.RIGHTS, StepOutcome.UNKNOWN, observation, _ASK_HINT, evidence)
    observation = "; ".join(["the user has the rights that they need", *judged.notes])
    return ConnectionStep(subject, Step.RIGHTS, StepOutcome.OK, observation, None, evidence)


class _Right(NamedTuple):
    operation: str
    on: str


class _Judged(NamedTuple):
    """Operations and what they are about."""

    lacking: list[_Right]
    unknown: list[_Right]
    notes: list[str]

    def judge(self, needed: Iterable[str], allowed: frozenset[str] | None, on: str) -> None:
        for operation in needed:
            if allowed is None:
                self.unknown.append(_Right(operation, on))
            elif operation not in allowed:
                self.lacking.append(_Right(operation, on))

    def judge_topics(self, needed: Iterable[str], allowed: AllowedOperations) -> None:
        """Judges topics by all that the user may see, and else by a name that nobody uses."""
        operations, seen = [*needed], allowed.topics
        if not operations:
            return
        if not seen:
            of_any_topic = None if seen is None else allowed.any_topic
            hidden = of_any_topic is not None and "Describe" not in of_any_topic
            for operation in operations:
                # Nobody tells what else may be done with topics that are not there.
                is_known = hidden or operation in _OF_ANY_TOPIC
                self.judge((operation,), of_any_topic if is_known else None, "topics")
            return
        for operation in operations:
            without = sorted(name for name, named in seen.items() if named is not None and operation not in named)
            if without:
                self.lacking.append(_Right(operation, _first_of(without)))
            elif None in seen.values():
                self.unknown.append(_Right(operation, "topics"))
        if allowed.any_topic is None or "Describe" not in allowed.any_topic:
            self.notes.append(f"on the {counted(len(seen), 'topic')} that it may see: others are hidden from it")


def _each(rights: list[_Right]) -> list[str]:
    return [f"{operation} on {on}" for operation, on in rights]


def _listed(rights: list[_Right]) -> str:
    """`Describe, Read on topic a; Describe on the cluster`."""
    operations: dict[str, list[str]] = {}
    for operation, on in rights:
        operations.setdefault(on, []).append(operation)
    return "; ".join(f"{', '.join(named)} on {on}" for on, named in operations.items())


def _first_of(topics: list[str]) -> str:
    """`topic a`, `topic a and 2 more`."""
    more = f" and {len(topics) - 1} more" if len(topics) > 1 else ""
    return f"topic {topics[0]}{more}"
