"""The one error base of tieredctl, and the one table that gives an error its exit code and hint."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """What the process tells its caller. Scripts rely on these numbers."""

    CLEAN = 0
    FAILURE = 1
    USAGE = 2
    FINDINGS = 3
    CORRUPTION = 4
    INCOMPLETE = 5
    LOCKED = 11
    INTERRUPTED = 130


# From harmless to worst: where several apply, the one furthest right is the process's.
_RISING_GRAVITY = (
    ExitCode.CLEAN,
    ExitCode.FINDINGS,
    ExitCode.INCOMPLETE,
    ExitCode.CORRUPTION,
    ExitCode.LOCKED,
    ExitCode.USAGE,
    ExitCode.FAILURE,
    ExitCode.INTERRUPTED,
)


def worst(*codes: ExitCode) -> ExitCode:
    """The gravest of several exit codes; clean when there is none."""
    return max(codes, key=_RISING_GRAVITY.index, default=ExitCode.CLEAN)


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """A row of the error table: stable code, exit code, and what the user can do next."""

    code: str
    exit_code: ExitCode
    hint: str


_TABLE = (
    ErrorKind("usage", ExitCode.USAGE, "Run the command with --help to see its options."),
    ErrorKind("no-source", ExitCode.USAGE, "Give one of --log-dir, --bootstrap-server or --export."),
    ErrorKind(
        "no-store", ExitCode.USAGE, "Give --store, for example --store file:/var/lib/tiered/kafka-tiered-storage."
    ),
    ErrorKind("ambiguous-topic", ExitCode.USAGE, "Choose one with --topic-id."),
    ErrorKind("unknown-topic", ExitCode.USAGE, "List what the metadata knows with `tieredctl metadata segments`."),
    ErrorKind("unknown-segment", ExitCode.USAGE, "List segments with `tieredctl metadata segments --all`."),
    ErrorKind("path-missing", ExitCode.USAGE, "Check the path for a typing error, or the mount for being there."),
    ErrorKind("path-forbidden", ExitCode.FAILURE, "Run as a user that may read it, such as the broker's own."),
    ErrorKind(
        "not-a-log-dir",
        ExitCode.USAGE,
        "Give a broker's log directory: the folder that holds __remote_log_metadata-0 and its siblings.",
    ),
    ErrorKind("unreadable", ExitCode.FAILURE, "Look at the file with `tieredctl store inspect`."),
    ErrorKind(
        "undecodable",
        ExitCode.CORRUPTION,
        "Look at the file with `tieredctl store inspect`, or restore it from a replica.",
    ),
    ErrorKind(
        "transformed",
        ExitCode.INCOMPLETE,
        "Inspect what `tieredctl remote read SEGMENT-ID --part log --to FILE` gives: that is what the broker wrote.",
    ),
    ErrorKind("unwritable", ExitCode.FAILURE, "Check that the folder exists, may be written to, and has room."),
    ErrorKind(
        "broker-unreachable", ExitCode.FAILURE, "Check host, port and firewall; TLS and SASL go in --command-config."
    ),
    ErrorKind("broker-refused", ExitCode.FAILURE, "Check the user, password and mechanism in --command-config."),
    ErrorKind("config-refused", ExitCode.FAILURE, "Nothing was changed: mend what Kafka names, and run it again."),
    ErrorKind(
        "no-metadata-topic",
        ExitCode.USAGE,
        "Is tiered storage enabled (remote.log.storage.system.enable=true) on this cluster?",
    ),
    ErrorKind(
        "metadata-topic-unsafe",
        ExitCode.USAGE,
        "Correct the settings of __remote_log_metadata first: --add-config cleanup.policy=delete,retention.ms=-1",
    ),
    ErrorKind(
        "metadata-partitions",
        ExitCode.USAGE,
        "Make the two equal: a broker whose count is another ends while it starts.",
    ),
    ErrorKind("missing-extra", ExitCode.FAILURE, "Install the package that is named."),
    ErrorKind("unknown-layout", ExitCode.USAGE, "Install the layout's plugin, or name one of those installed."),
    ErrorKind("bad-config", ExitCode.USAGE, "Mend the file, or name another with TIEREDCTL_CONFIG."),
    ErrorKind("private-key", ExitCode.USAGE, "Give the right private key with --layout-option private-key=FILE."),
    ErrorKind("store-unreachable", ExitCode.FAILURE, "Check the store's URL, endpoint and the network."),
    ErrorKind("store-throttled", ExitCode.FAILURE, "Try again later, or ask the store for less at a time."),
    ErrorKind("store-forbidden", ExitCode.FAILURE, "Check whose credentials are in use, and what they are allowed."),
    ErrorKind("store-incapable", ExitCode.FAILURE, "Use a store that can, or a newer release of its server."),
    ErrorKind("no-credentials", ExitCode.FAILURE, "Log in as you would for the cloud's own command line."),
    ErrorKind("bucket-missing", ExitCode.USAGE, "Check the bucket's name, and the endpoint and region it is in."),
    ErrorKind("object-missing", ExitCode.FAILURE, "List what is there with `tieredctl remote ls`."),
    ErrorKind(
        "object-archived",
        ExitCode.FAILURE,
        "Restore it from the archive with the cloud's own command line first; brokers cannot read it either.",
    ),
    ErrorKind(
        "inventory-unusable",
        ExitCode.FAILURE,
        "Give an inventory that is complete, or none: the store is listed then.",
    ),
    ErrorKind(
        "other-metadata-manager",
        ExitCode.USAGE,
        "Nothing can be called missing or an orphan here: ask that manager's own tools.",
    ),
    ErrorKind(
        "metadata-incomplete",
        ExitCode.INCOMPLETE,
        "Nothing is planned or removed on half of the history: look with `tieredctl metadata stats`.",
    ),
    ErrorKind("another-cluster", ExitCode.USAGE, "Check --bootstrap-server and --cluster-id against the plan's."),
    ErrorKind("no-overlap", ExitCode.USAGE, "Check --store, --layout and where the metadata is read from."),
    ErrorKind("ambiguous-prefix", ExitCode.USAGE, "Name the one root in --store."),
    ErrorKind("quarantine-scanned", ExitCode.USAGE, "Name the root that the quarantine belongs to in --store."),
    ErrorKind(
        "topics-doubtful",
        ExitCode.USAGE,
        "Give the ids of all topics that the cluster has, internal ones too, as `kafka-topics --describe` shows them.",
    ),
    ErrorKind("age-too-low", ExitCode.USAGE, "Give a --min-age of 1h or more, or --allow-young where nothing writes."),
    ErrorKind(
        "topic-live",
        ExitCode.USAGE,
        "Delete the topic first; --even-if-live takes its remote data from it all the same.",
    ),
    ErrorKind(
        "topic-in-use",
        ExitCode.INCOMPLETE,
        "Wait until brokers have been silent about it for ten minutes, or give --brokers-are-done where they are.",
    ),
    ErrorKind(
        "topic-unclear",
        ExitCode.INCOMPLETE,
        "Ask while all brokers are up: a topic counts as gone when each of them says that it does not know its id.",
    ),
    ErrorKind("plan-too-large", ExitCode.USAGE, "Look at what is planned, and raise --max-percent if it is right."),
    ErrorKind("plan-altered", ExitCode.USAGE, "Make a new plan: only one that nobody touched is carried out."),
    ErrorKind(
        "plan-unsigned",
        ExitCode.USAGE,
        "Make the plan yourself, or share its maker's key with TIEREDCTL_PLAN_KEY_FILE; or give --trust-plan, by which "
        "its own limits count for nothing.",
    ),
    ErrorKind(
        "plan-key", ExitCode.USAGE, "Name a file that only you may read with TIEREDCTL_PLAN_KEY_FILE, or mend this one."
    ),
    ErrorKind("plan-used", ExitCode.USAGE, "Make a new plan for what is nobody's by now."),
    ErrorKind("plan-expired", ExitCode.USAGE, "Make a new plan: what is nobody's may have changed."),
    ErrorKind("not-confirmed", ExitCode.USAGE, "Give --yes and --cluster-id, or run it on a terminal."),
    ErrorKind("receipts-missing", ExitCode.USAGE, "Name them with --receipts: a run of this plan left them elsewhere."),
    ErrorKind("receipts-damaged", ExitCode.FAILURE, "Name the right receipts of this plan."),
    ErrorKind("world-changed", ExitCode.INCOMPLETE, "Look at what changed, and make a new plan."),
    ErrorKind("removal-failed", ExitCode.INCOMPLETE, "Run it again once the reason is gone: it goes on."),
    ErrorKind(
        "locked",
        ExitCode.LOCKED,
        "Wait for the other run to end; `tieredctl orphans unlock` shows it, and frees the lease of one that is dead.",
    ),
    ErrorKind("clock-skew", ExitCode.FAILURE, "Set the clock that is wrong; nothing was changed."),
    ErrorKind(
        "ledger-damaged",
        ExitCode.FAILURE,
        "Make a new plan; what this one removed is put back with `tieredctl orphans restore PLANID --store URL`.",
    ),
    ErrorKind("lease-lost", ExitCode.LOCKED, "Run it again when the other run is over: it goes on."),
    ErrorKind("checkpoint-unusable", ExitCode.USAGE, "Remove the file, or name another, to list the store anew."),
    ErrorKind("spark-failed", ExitCode.FAILURE, "Read Spark's own message above, or run with --engine local."),
    ErrorKind("demo-failed", ExitCode.FAILURE, "Please report it, with what is shown above."),
    ErrorKind("fault", ExitCode.FAILURE, "Please report this line."),
    ErrorKind("interrupted", ExitCode.INTERRUPTED, "Run it again: it goes on where it stopped."),
)

ERROR_KINDS = {kind.code: kind for kind in _TABLE}


class TieredctlError(Exception):
    """A failure with a name: one sentence for people, a code for scripts, an exit code for the shell.

    `code` must be in `ERROR_KINDS`; `hint` overrides the table's where the place knows better.
    """

    def __init__(self, code: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.kind = ERROR_KINDS[code]
        self.message = message
        self.hint = hint if hint is not None else self.kind.hint

    @property
    def exit_code(self) -> ExitCode:
        return self.kind.exit_code


class DecodeError(TieredctlError):
    """Bytes that are not what their format says. `position` counts bytes from the start of the input."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__("undecodable", f"{message} at byte {position}")
        self.reason = message
        self.position = position

    def __reduce__(self) -> tuple[type[DecodeError], tuple[Any, ...]]:
        return DecodeError, (self.reason, self.position)
