"""`doctor upgrade` and `doctor downgrade`: what to do first, and what changes, for a pair of releases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.cluster.release import KNOWN_BUGS, Presence, Release, bug_findings

_SET_ON_TOPIC = "kafka-configs --bootstrap-server … --alter --entity-type topics --entity-name TOPIC"
_METADATA_TOPIC = "kafka-configs --bootstrap-server … --alter --entity-type topics --entity-name __remote_log_metadata"


@dataclass(frozen=True, slots=True)
class Step:
    """What to mind when an upgrade or downgrade crosses the first release of a line."""

    line: tuple[int, int]
    subject: str
    message: str
    command: str
    severity: Severity = Severity.WARNING


UPGRADE_STEPS = (
    Step(
        (3, 6),
        "producer snapshots",
        "segments written before 2.8 have no producer snapshots and are never tiered: before you enable a topic, wait "
        "until retention has removed them from every replica",
        "ls LOG-DIR/TOPIC-*/*.snapshot",
    ),
    Step(
        (3, 6),
        "events of 3.0 to 3.5",
        "brokers from 3.6 on cannot read metadata events that 3.0 to 3.5 wrote, and their reader stops there: "
        "__remote_log_metadata must hold none",
        "tieredctl metadata export FILE …",
        Severity.ERROR,
    ),
    Step(
        (3, 8),
        "local metadata files",
        "_rlmm_committed_offsets and remote_log_snapshot are no longer used: a starting broker replays the whole "
        "metadata topic",
        "tieredctl metadata stats …",
        Severity.INFO,
    ),
    Step(
        (3, 8),
        "quotas",
        "copy and fetch quotas can be set, also while brokers run",
        "kafka-configs --bootstrap-server … --alter --entity-type brokers --entity-default "
        "--add-config remote.log.manager.copy.max.bytes.per.second=BYTES",
        Severity.INFO,
    ),
    Step(
        (3, 9),
        "disabling",
        "tiering can be turned off without deleting the topic (KIP-950), with KRaft only; remote.log.copy.disable=true "
        "needs local retention to be total retention",
        f"{_SET_ON_TOPIC} --add-config remote.log.copy.disable=true,local.retention.ms=-2,local.retention.bytes=-2",
        Severity.INFO,
    ),
    Step(
        (4, 0),
        "clients",
        "brokers no longer answer ListOffsets version 0: update clients and tools that use it",
        "kafka-broker-api-versions --bootstrap-server …",
    ),
    Step(
        (4, 0),
        "thread pools",
        "remote.log.manager.thread.pool.size defaults to 2 instead of 10, and is deprecated from 4.2 on: set the sizes "
        "of the copier, expiration and follower pools by their own names",
        "tieredctl doctor config server.properties --kafka-version {release}",
    ),
    Step(
        (4, 3),
        "min ISR of the metadata topic",
        "it defaults to 2 for a new metadata topic only: change an existing one by hand",
        f"{_METADATA_TOPIC} --add-config min.insync.replicas=2",
    ),
    Step(
        (4, 3),
        "followers",
        "a new follower may start from the last tiered offset (KIP-1023); it is off by default",
        "in server.properties: follower.fetch.last.tiered.offset.enable=true",
        Severity.INFO,
    ),
    Step(
        (4, 4),
        "copy lag",
        "a closed segment may wait on the leader's disk before it is copied (KIP-1241), so that less is kept twice; "
        "by default it is copied at once",
        f"{_SET_ON_TOPIC} --add-config remote.copy.lag.ms=-1",
        Severity.INFO,
    ),
)
"""What each line of releases brings to an upgrade."""

DOWNGRADE_STEPS = (
    Step(
        (4, 4),
        "copy lag",
        "remote.copy.lag.ms and remote.copy.lag.bytes do not exist before 4.4: remove them, and expect all waiting "
        "segments to be copied at once",
        f"{_SET_ON_TOPIC} --delete-config remote.copy.lag.ms,remote.copy.lag.bytes",
    ),
    Step(
        (4, 3),
        "followers",
        "follower.fetch.last.tiered.offset.enable does not exist before 4.3: remove it from the brokers' properties",
        "grep follower.fetch.last.tiered.offset.enable server.properties",
    ),
    Step(
        (4, 3),
        "min ISR of the metadata topic",
        "a metadata topic created before 4.3 inherits the brokers' min.insync.replicas, which defaults to 1",
        f"{_METADATA_TOPIC} --add-config min.insync.replicas=2",
    ),
    Step(
        (4, 2),
        "ListOffsets -6",
        "brokers before 4.2 do not report the earliest pending upload offset",
        "tieredctl offsets TOPIC …",
        Severity.INFO,
    ),
    Step(
        (4, 0),
        "txnIdxEmpty",
        "events carry a tagged field that older brokers safely ignore",
        "tieredctl metadata format …",
        Severity.INFO,
    ),
    Step(
        (3, 9),
        "KIP-950",
        "remote.log.copy.disable and remote.log.delete.on.disable do not exist before 3.9, where a topic can only be "
        "untiered by deleting it: first remove both settings, or disable tiering",
        f"{_SET_ON_TOPIC} --delete-config remote.log.copy.disable,remote.log.delete.on.disable",
    ),
    Step(
        (3, 9),
        "early access",
        "tiered storage is in early access before 3.9, and brokers do not report the latest tiered offset",
        "tieredctl metadata epochs TOPIC:PARTITION …",
    ),
    Step(
        (3, 8),
        "log directories",
        "before 3.8, brokers with several log directories and tiered storage do not start",
        "tieredctl doctor config server.properties --kafka-version {release}",
        Severity.ERROR,
    ),
    Step(
        (3, 8),
        "quotas",
        "copy and fetch quotas do not exist before 3.8: nothing limits how much brokers copy",
        "grep max.bytes.per.second server.properties",
    ),
    Step(
        (3, 6),
        "events",
        "brokers of 3.0 to 3.5 cannot read what later ones wrote to __remote_log_metadata: they cannot serve what is "
        "only in remote storage. First set local retention to total retention and wait until all is local",
        f"{_SET_ON_TOPIC} --add-config local.retention.ms=-2,local.retention.bytes=-2",
        Severity.ERROR,
    ),
    Step(
        (3, 6),
        "cleanup",
        "remote-log-index-cache and the metadata's cache files stay in the log directories, and the data in remote "
        "storage: remove them by hand (KIP-405)",
        "ls -d LOG-DIR/remote-log-index-cache LOG-DIR/_rlmm_committed_offsets LOG-DIR/*/remote_log_snapshot",
    ),
)
"""What a downgrade below each line of releases loses."""


def upgrade_findings(old: Release, new: Release) -> list[Finding]:
    """Steps, and the bugs that the new release still has. Raises TieredctlError `usage` where it is not a later one."""
    if not _is_later(new, old):
        raise TieredctlError(ErrorCode.USAGE, f"{new} is not later than {old}.", hint="Give the older release first.")
    steps = [
        _finding(FindingCode.UPGRADE_STEP, step, new) for step in UPGRADE_STEPS if old.line < step.line <= new.line
    ]
    return _gravest_first([*steps, *bug_findings(new, has_size_retention=True)])


def downgrade_findings(new: Release, old: Release) -> list[Finding]:
    """Steps, and the bugs that come back. Raises TieredctlError `usage` where the old release is not an earlier one."""
    if not _is_later(new, old):
        raise TieredctlError(ErrorCode.USAGE, f"{old} is not earlier than {new}.", hint="Give the newer release first.")
    steps = [
        _finding(FindingCode.DOWNGRADE_STEP, step, old) for step in DOWNGRADE_STEPS if old.line < step.line <= new.line
    ]
    return _gravest_first([*steps, *_coming_back(new, old)])


def _coming_back(new: Release, old: Release) -> Iterator[Finding]:
    gone = {bug.issue for bug in KNOWN_BUGS if bug.presence(new) is Presence.NO}
    for finding in bug_findings(old, has_size_retention=True):
        if finding.subject in gone:
            yield replace(
                finding, message=f"this bug comes back: {finding.message}", severity_override=Severity.WARNING
            )


def _finding(code: FindingCode, step: Step, target: Release) -> Finding:
    since = f"{step.line[0]}.{step.line[1]}"
    evidence = {"since": since, "command": step.command.format(release=target)}
    return Finding(code, step.subject, step.message, evidence, step.severity)


def _gravest_first(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: -finding.severity)


def _is_later(new: Release, old: Release) -> bool:
    return (*new.line, new.patch or 0) > (*old.line, old.patch or 0)
