"""The one error base of tieredctl, and the one table that gives an error its exit code and hint."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from errno import EDQUOT, ENAMETOOLONG, ENOSPC
from pathlib import Path
from typing import Any


class ExitCode(IntEnum):
    """The process's exit status. Scripts rely on these numbers."""

    CLEAN = 0
    FAILURE = 1
    USAGE = 2
    FINDINGS = 3
    CORRUPTION = 4
    INCOMPLETE = 5
    LOCKED = 11
    INTERRUPTED = 130


EXIT_CODE_MEANINGS = {
    ExitCode.CLEAN: "clean, or done",
    ExitCode.FAILURE: "failure",
    ExitCode.USAGE: "the command line was not understood",
    ExitCode.FINDINGS: "findings that need attention; from `metadata lookup` and `explain`, that there is nothing",
    ExitCode.CORRUPTION: "corruption or data loss",
    ExitCode.INCOMPLETE: "incomplete: could not look everywhere",
    ExitCode.LOCKED: "locked by another run",
    ExitCode.INTERRUPTED: "interrupted",
}


# From harmless to worst: where several apply, the process exits with the last one.
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


class ErrorCode(StrEnum):
    """What went wrong, for scripts."""

    USAGE = "usage"
    NO_SOURCE = "no-source"
    NO_STORE = "no-store"
    AMBIGUOUS_TOPIC = "ambiguous-topic"
    UNKNOWN_TOPIC = "unknown-topic"
    UNKNOWN_SEGMENT = "unknown-segment"
    PATH_MISSING = "path-missing"
    PATH_FORBIDDEN = "path-forbidden"
    NOT_A_LOG_DIR = "not-a-log-dir"
    UNREADABLE = "unreadable"
    UNDECODABLE = "undecodable"
    TRANSFORMED = "transformed"
    UNWRITABLE = "unwritable"
    BROKER_UNREACHABLE = "broker-unreachable"
    BROKER_REFUSED = "broker-refused"
    CONFIG_REFUSED = "config-refused"
    SNAPSHOT_UNAVAILABLE = "snapshot-unavailable"
    NO_METADATA_TOPIC = "no-metadata-topic"
    METADATA_TOPIC_UNSAFE = "metadata-topic-unsafe"
    METADATA_PARTITIONS = "metadata-partitions"
    MISSING_EXTRA = "missing-extra"
    UNKNOWN_LAYOUT = "unknown-layout"
    BAD_CONFIG = "bad-config"
    PRIVATE_KEY = "private-key"
    STORE_UNREACHABLE = "store-unreachable"
    STORE_THROTTLED = "store-throttled"
    STORE_FORBIDDEN = "store-forbidden"
    STORE_INCAPABLE = "store-incapable"
    NO_CREDENTIALS = "no-credentials"
    BUCKET_MISSING = "bucket-missing"
    OBJECT_MISSING = "object-missing"
    OBJECT_ARCHIVED = "object-archived"
    INVENTORY_UNUSABLE = "inventory-unusable"
    OTHER_METADATA_MANAGER = "other-metadata-manager"
    METADATA_INCOMPLETE = "metadata-incomplete"
    ANOTHER_CLUSTER = "another-cluster"
    NO_OVERLAP = "no-overlap"
    AMBIGUOUS_PREFIX = "ambiguous-prefix"
    QUARANTINE_SCANNED = "quarantine-scanned"
    TOPICS_DOUBTFUL = "topics-doubtful"
    AGE_TOO_LOW = "age-too-low"
    EPOCHS_UNKNOWN = "epochs-unknown"
    TOPIC_LIVE = "topic-live"
    TOPIC_IN_USE = "topic-in-use"
    TOPIC_UNCLEAR = "topic-unclear"
    PLAN_TOO_LARGE = "plan-too-large"
    PROMISED_MISSING = "promised-objects-missing"
    PLAN_ALTERED = "plan-altered"
    PLAN_UNSIGNED = "plan-unsigned"
    PLAN_KEY = "plan-key"
    PLAN_USED = "plan-used"
    PLAN_EXPIRED = "plan-expired"
    NOT_CONFIRMED = "not-confirmed"
    RECEIPTS_MISSING = "receipts-missing"
    RECEIPTS_DAMAGED = "receipts-damaged"
    WORLD_CHANGED = "world-changed"
    REMOVAL_FAILED = "removal-failed"
    COPY_ALTERED = "copy-altered"
    COPY_UNVERIFIED = "copy-unverified"
    LOCKED = "locked"
    NODE_RUNNING = "node-running"
    NODE_UNCLEAR = "node-unclear"
    CLOCK_SKEW = "clock-skew"
    LEDGER_DAMAGED = "ledger-damaged"
    LEASE_LOST = "lease-lost"
    CHECKPOINT_UNUSABLE = "checkpoint-unusable"
    MARK_UNUSABLE = "mark-unusable"
    NO_CONTROL_PLANE = "no-control-plane"
    CONTROL_PLANE_UNREACHABLE = "control-plane-unreachable"
    CONTROL_PLANE_REFUSED = "control-plane-refused"
    CONTROL_PLANE_UNKNOWN = "control-plane-unknown"
    CONTROL_PLANE_DOUBTFUL = "control-plane-doubtful"
    SPARK_FAILED = "spark-failed"
    DEMO_FAILED = "demo-failed"
    FAULT = "fault"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """A row of the error table: stable code, exit code, and what the user can do next."""

    code: ErrorCode
    exit_code: ExitCode
    hint: str


_TABLE = (
    ErrorKind(ErrorCode.USAGE, ExitCode.USAGE, "Run the command with --help to see what it takes."),
    ErrorKind(
        ErrorCode.NO_SOURCE, ExitCode.USAGE, "Give one of --log-dir, --bootstrap-server, --export or --metadata-source."
    ),
    ErrorKind(
        ErrorCode.NO_STORE,
        ExitCode.USAGE,
        "Give --store, for example --store file:/var/lib/tiered/kafka-tiered-storage.",
    ),
    ErrorKind(ErrorCode.AMBIGUOUS_TOPIC, ExitCode.USAGE, "Choose one with --topic-id."),
    ErrorKind(
        ErrorCode.UNKNOWN_TOPIC, ExitCode.USAGE, "List what the metadata knows with `tieredctl metadata segments`."
    ),
    ErrorKind(ErrorCode.UNKNOWN_SEGMENT, ExitCode.USAGE, "List segments with `tieredctl metadata segments --all`."),
    ErrorKind(
        ErrorCode.PATH_MISSING,
        ExitCode.USAGE,
        "Check the path for a typo, and that the file system is mounted.",
    ),
    ErrorKind(ErrorCode.PATH_FORBIDDEN, ExitCode.FAILURE, "Run as a user who may read it, such as the broker's own."),
    ErrorKind(
        ErrorCode.NOT_A_LOG_DIR,
        ExitCode.USAGE,
        "Give a broker's log directory: the folder that holds __remote_log_metadata-0 and its siblings.",
    ),
    ErrorKind(ErrorCode.UNREADABLE, ExitCode.FAILURE, "Look at the file with `tieredctl store inspect`."),
    ErrorKind(
        ErrorCode.UNDECODABLE,
        ExitCode.CORRUPTION,
        "Look at the file with `tieredctl store inspect`, or restore it from a replica.",
    ),
    ErrorKind(
        ErrorCode.TRANSFORMED,
        ExitCode.INCOMPLETE,
        "Run `tieredctl remote read SEGMENT-ID --part log --to FILE` and inspect FILE: that is what the broker wrote.",
    ),
    ErrorKind(ErrorCode.UNWRITABLE, ExitCode.FAILURE, "Check that the folder exists, is writable, and has free space."),
    ErrorKind(
        ErrorCode.BROKER_UNREACHABLE,
        ExitCode.FAILURE,
        "Check host, port and firewall; TLS and SASL go in --command-config.",
    ),
    ErrorKind(
        ErrorCode.BROKER_REFUSED, ExitCode.FAILURE, "Check the user, password and mechanism in --command-config."
    ),
    ErrorKind(
        ErrorCode.CONFIG_REFUSED, ExitCode.FAILURE, "Nothing was changed: correct what Kafka names, and run it again."
    ),
    ErrorKind(
        ErrorCode.SNAPSHOT_UNAVAILABLE, ExitCode.FAILURE, "Run it again without --snapshot, for the latest snapshot."
    ),
    ErrorKind(
        ErrorCode.NO_METADATA_TOPIC,
        ExitCode.USAGE,
        "Is tiered storage enabled (remote.log.storage.system.enable=true) on this cluster?",
    ),
    ErrorKind(
        ErrorCode.METADATA_TOPIC_UNSAFE,
        ExitCode.USAGE,
        "Correct the settings of __remote_log_metadata first: --add-config cleanup.policy=delete,retention.ms=-1",
    ),
    ErrorKind(
        ErrorCode.METADATA_PARTITIONS,
        ExitCode.USAGE,
        "Make the two equal: a broker configured with a different count exits at startup.",
    ),
    ErrorKind(ErrorCode.MISSING_EXTRA, ExitCode.FAILURE, "Install the named package."),
    ErrorKind(ErrorCode.UNKNOWN_LAYOUT, ExitCode.USAGE, "Install the layout's plugin, or name an installed layout."),
    ErrorKind(ErrorCode.BAD_CONFIG, ExitCode.USAGE, "Correct the file, or name another with TIEREDCTL_CONFIG."),
    ErrorKind(
        ErrorCode.PRIVATE_KEY, ExitCode.USAGE, "Give the right private key with --layout-option private-key=FILE."
    ),
    ErrorKind(ErrorCode.STORE_UNREACHABLE, ExitCode.FAILURE, "Check the store's URL, endpoint and the network."),
    ErrorKind(
        ErrorCode.STORE_THROTTLED, ExitCode.FAILURE, "Try again later, or send the store fewer requests at a time."
    ),
    ErrorKind(ErrorCode.STORE_FORBIDDEN, ExitCode.FAILURE, "Check whose credentials are in use, and what they allow."),
    ErrorKind(
        ErrorCode.STORE_INCAPABLE, ExitCode.FAILURE, "Use a store that supports this, or a newer release of its server."
    ),
    ErrorKind(ErrorCode.NO_CREDENTIALS, ExitCode.FAILURE, "Log in as you would for the cloud's own command line."),
    ErrorKind(
        ErrorCode.BUCKET_MISSING, ExitCode.USAGE, "Check the bucket's name, and the endpoint and region it is in."
    ),
    ErrorKind(ErrorCode.OBJECT_MISSING, ExitCode.FAILURE, "List what is there with `tieredctl remote ls`."),
    ErrorKind(
        ErrorCode.OBJECT_ARCHIVED,
        ExitCode.FAILURE,
        "Restore it from the archive with the cloud's own command line first; brokers cannot read it either.",
    ),
    ErrorKind(
        ErrorCode.INVENTORY_UNUSABLE,
        ExitCode.FAILURE,
        "Give a complete inventory, or none: then the store is listed.",
    ),
    ErrorKind(
        ErrorCode.OTHER_METADATA_MANAGER,
        ExitCode.USAGE,
        "The topic has nothing about its segments: give --metadata-source, if that manager has a plugin.",
    ),
    ErrorKind(
        ErrorCode.METADATA_INCOMPLETE,
        ExitCode.INCOMPLETE,
        "Nothing is planned or removed on incomplete metadata: see `tieredctl metadata stats`.",
    ),
    ErrorKind(
        ErrorCode.ANOTHER_CLUSTER, ExitCode.USAGE, "Check --bootstrap-server and --cluster-id against the plan's."
    ),
    ErrorKind(ErrorCode.NO_OVERLAP, ExitCode.USAGE, "Check --store, --layout and where the metadata is read from."),
    ErrorKind(ErrorCode.AMBIGUOUS_PREFIX, ExitCode.USAGE, "Name a single root in --store."),
    ErrorKind(ErrorCode.QUARANTINE_SCANNED, ExitCode.USAGE, "Name the root that the quarantine belongs to in --store."),
    ErrorKind(
        ErrorCode.TOPICS_DOUBTFUL,
        ExitCode.USAGE,
        "Give the ids of all topics of the cluster, internal ones too, as `kafka-topics --describe` shows them.",
    ),
    ErrorKind(
        ErrorCode.AGE_TOO_LOW,
        ExitCode.USAGE,
        "Give --min-age 1h or more, or --allow-young if nothing writes to the store.",
    ),
    ErrorKind(ErrorCode.EPOCHS_UNKNOWN, ExitCode.USAGE, "Name it in --untiered-topic, if it is not tiered."),
    ErrorKind(
        ErrorCode.TOPIC_LIVE,
        ExitCode.USAGE,
        "Delete the topic first; --even-if-live removes its remote data even so.",
    ),
    ErrorKind(
        ErrorCode.TOPIC_IN_USE,
        ExitCode.INCOMPLETE,
        "Wait until brokers have written nothing about it for ten minutes, or give --brokers-are-done.",
    ),
    ErrorKind(
        ErrorCode.TOPIC_UNCLEAR,
        ExitCode.INCOMPLETE,
        "Run it while all brokers are up: a topic counts as gone when every broker reports its id as unknown.",
    ),
    ErrorKind(ErrorCode.PLAN_TOO_LARGE, ExitCode.USAGE, "Review the plan, and raise --max-percent if it is right."),
    ErrorKind(
        ErrorCode.PROMISED_MISSING,
        ExitCode.INCOMPLETE,
        "Find them first: what looks orphaned may be theirs. If they are known to be lost, give --max-missing.",
    ),
    ErrorKind(ErrorCode.PLAN_ALTERED, ExitCode.USAGE, "Make a new plan: a plan that was altered is not applied."),
    ErrorKind(
        ErrorCode.PLAN_UNSIGNED,
        ExitCode.USAGE,
        "Make the plan yourself, or name its maker's key with TIEREDCTL_PLAN_KEY_FILE; or give --trust-plan, which "
        "ignores the plan's own limits.",
    ),
    ErrorKind(
        ErrorCode.PLAN_KEY,
        ExitCode.USAGE,
        "Name a file that only you may read with TIEREDCTL_PLAN_KEY_FILE, or correct this one.",
    ),
    ErrorKind(ErrorCode.PLAN_USED, ExitCode.USAGE, "This plan was used already; make a new one."),
    ErrorKind(ErrorCode.PLAN_EXPIRED, ExitCode.USAGE, "Make a new plan: which objects are orphaned may have changed."),
    ErrorKind(ErrorCode.NOT_CONFIRMED, ExitCode.USAGE, "Give --yes and --cluster-id, or run it on a terminal."),
    ErrorKind(
        ErrorCode.RECEIPTS_MISSING,
        ExitCode.USAGE,
        "Name them with --receipts: an earlier run of this plan wrote them elsewhere.",
    ),
    ErrorKind(ErrorCode.RECEIPTS_DAMAGED, ExitCode.FAILURE, "Name the right receipts for this plan."),
    ErrorKind(ErrorCode.WORLD_CHANGED, ExitCode.INCOMPLETE, "Look at what changed, and make a new plan."),
    ErrorKind(ErrorCode.REMOVAL_FAILED, ExitCode.INCOMPLETE, "Run it again once the cause is resolved: it resumes."),
    ErrorKind(
        ErrorCode.COPY_ALTERED,
        ExitCode.INCOMPLETE,
        "Somebody wrote other bytes there. If the bucket keeps versions, bring back the earlier one, and run it again.",
    ),
    ErrorKind(
        ErrorCode.COPY_UNVERIFIED,
        ExitCode.INCOMPLETE,
        "Use the key that the plan was applied with; or `tieredctl orphans restore --accept-unverified`, which puts "
        "back what is in quarantine, whoever wrote it.",
    ),
    ErrorKind(
        ErrorCode.LOCKED,
        ExitCode.LOCKED,
        "Wait for the other run to end; `tieredctl orphans unlock` shows it, and frees the lease of a dead run.",
    ),
    ErrorKind(ErrorCode.NODE_RUNNING, ExitCode.LOCKED, "Stop the node first: a running one writes its files itself."),
    ErrorKind(
        ErrorCode.NODE_UNCLEAR,
        ExitCode.INCOMPLETE,
        "Name the log directory of a stopped node as it is, or a whole copy: .lock or .kafka_cleanshutdown included.",
    ),
    ErrorKind(ErrorCode.CLOCK_SKEW, ExitCode.FAILURE, "Correct the wrong clock; nothing was changed."),
    ErrorKind(
        ErrorCode.LEDGER_DAMAGED,
        ExitCode.FAILURE,
        "Make a new plan; put back what this one removed with `tieredctl orphans restore PLANID --store URL`.",
    ),
    ErrorKind(ErrorCode.LEASE_LOST, ExitCode.LOCKED, "Run it again when the other run is over: it resumes."),
    ErrorKind(
        ErrorCode.CHECKPOINT_UNUSABLE, ExitCode.USAGE, "Remove the file, or name another, to list the store again."
    ),
    ErrorKind(ErrorCode.MARK_UNUSABLE, ExitCode.USAGE, "Run the job again, and give the folder that it wrote."),
    ErrorKind(
        ErrorCode.NO_CONTROL_PLANE,
        ExitCode.USAGE,
        "Give --control-plane, for example --control-plane postgresql://ROLE@HOST/DATABASE.",
    ),
    ErrorKind(
        ErrorCode.CONTROL_PLANE_UNREACHABLE,
        ExitCode.FAILURE,
        "Check host, port, database and role; a password goes into the file that PGPASSFILE names.",
    ),
    ErrorKind(
        ErrorCode.CONTROL_PLANE_REFUSED,
        ExitCode.FAILURE,
        "The role needs SELECT on files, batches, logs, producer_state and flyway_schema_history.",
    ),
    ErrorKind(
        ErrorCode.CONTROL_PLANE_UNKNOWN,
        ExitCode.INCOMPLETE,
        "Check the database's name; nothing is judged by a schema that this release of tieredctl does not know.",
    ),
    ErrorKind(
        ErrorCode.CONTROL_PLANE_DOUBTFUL,
        ExitCode.INCOMPLETE,
        "Nothing is planned or removed by a control plane that may have lost commits.",
    ),
    ErrorKind(ErrorCode.SPARK_FAILED, ExitCode.FAILURE, "Read Spark's own message above, or run with --engine local."),
    ErrorKind(ErrorCode.DEMO_FAILED, ExitCode.FAILURE, "Please report it, with the output above."),
    ErrorKind(ErrorCode.FAULT, ExitCode.FAILURE, "Please report this line."),
    ErrorKind(ErrorCode.INTERRUPTED, ExitCode.INTERRUPTED, "Run it again: it resumes where it stopped."),
)

ERROR_KINDS = {kind.code: kind for kind in _TABLE}


class TieredctlError(Exception):
    """A failure with a name: one sentence for people, a code for scripts, an exit code for the shell.

    `hint` overrides the table's where the caller knows better.
    """

    def __init__(self, code: ErrorCode, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.kind = ERROR_KINDS[code]
        self.message = message
        self.hint = hint if hint is not None else self.kind.hint

    @property
    def sentence(self) -> str:
        """The message with its full stop."""
        return self.message if self.message.endswith((".", "!", "?")) else f"{self.message}."

    @property
    def code(self) -> ErrorCode:
        return self.kind.code

    @property
    def exit_code(self) -> ExitCode:
        return self.kind.exit_code


def system_error(fault: OSError | MemoryError) -> TieredctlError:
    """An error of the system that the place where it arose could not name better."""
    if isinstance(fault, MemoryError):
        return TieredctlError(ErrorCode.UNREADABLE, "There is not enough memory.", hint="")
    # Of a file that was opened by its number Python knows no name.
    named = isinstance(fault.filename, str | bytes) and fault.filename
    where = os.fsdecode(fault.filename) if named else "the input or output"
    what = f"{where}: {fault.strerror or fault}"
    if isinstance(fault, FileNotFoundError):
        return TieredctlError(ErrorCode.PATH_MISSING, f"There is no {where}")
    if isinstance(fault, PermissionError):
        return TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{where} may not be read")
    if fault.errno == ENAMETOOLONG:
        return TieredctlError(ErrorCode.PATH_MISSING, what)
    if fault.errno in (ENOSPC, EDQUOT):
        return TieredctlError(ErrorCode.UNWRITABLE, what)
    return TieredctlError(ErrorCode.UNREADABLE, what, hint="")


def missing_extra(message: str, extra: str) -> TieredctlError:
    """That a package is not installed which one of tieredctl's extras brings."""
    hint = f"Install it with {installation_of(extra)}."
    return TieredctlError(ErrorCode.MISSING_EXTRA, message, hint=hint)


def installation_of(extra: str) -> str:
    """The command that adds an extra to this installation: uv's and pipx's have no pip of their own on the path."""
    requirement = f"'tieredctl[{extra}]'"
    if _is_uv_tool():
        return f"uv tool install {requirement}, and the same --with as before"
    return f"{_pip_install()} {requirement}"


def missing_package(what: str, package: str) -> TieredctlError:
    """That something is in another package of tieredctl's, which is not installed."""
    hint = f"Install it with {_pip_install()} {package}."
    if _is_uv_tool():
        hint = f"Install it with uv tool install tieredctl --with {package}, and the same --with as before."
    return TieredctlError(ErrorCode.USAGE, f"{what} is in {package}, which is not installed.", hint=hint)


def _is_uv_tool() -> bool:
    return Path(sys.prefix, "uv-receipt.toml").exists()


def _pip_install() -> str:
    is_pipx = Path(sys.prefix, "pipx_metadata.json").exists()
    return "pipx runpip tieredctl install" if is_pipx else "pip install"


class DecodeError(TieredctlError):
    """Bytes that do not follow their format. `position` counts bytes from the start of the input."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(ErrorCode.UNDECODABLE, f"{message} at byte {position}")
        self.reason = message
        self.position = position

    def __reduce__(self) -> tuple[type[DecodeError], tuple[Any, ...]]:
        return DecodeError, (self.reason, self.position)
