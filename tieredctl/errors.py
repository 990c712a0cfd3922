"""The one error base of tieredctl, and the one table that gives an error its exit code and hint."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import IntEnum, StrEnum
from errno import EDQUOT, ENAMETOOLONG, ENOSPC
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
    """What went wrong, for scripts: a stable word, its exit code, and what the user can do next."""

    exit_code: ExitCode
    hint: str

    def __new__(cls, word: str, exit_code: ExitCode = ExitCode.FAILURE, hint: str = "") -> ErrorCode:
        code = str.__new__(cls, word)
        code._value_, code.exit_code, code.hint = word, exit_code, hint
        return code

    USAGE = "usage", ExitCode.USAGE, "Run the command with --help to see what it takes."
    NO_SOURCE = "no-source", ExitCode.USAGE, "Give one of --log-dir, --bootstrap-server, --export or --metadata-source."
    NO_STORE = (
        "no-store",
        ExitCode.USAGE,
        "Give --store, for example --store file:/var/lib/tiered/kafka-tiered-storage.",
    )
    AMBIGUOUS_TOPIC = "ambiguous-topic", ExitCode.USAGE, "Choose one with --topic-id."
    UNKNOWN_TOPIC = "unknown-topic", ExitCode.USAGE, "List what the metadata knows with `tieredctl metadata segments`."
    UNKNOWN_SEGMENT = "unknown-segment", ExitCode.USAGE, "List segments with `tieredctl metadata segments --all`."
    PATH_MISSING = "path-missing", ExitCode.USAGE, "Check the path for a typo, and that the file system is mounted."
    PATH_FORBIDDEN = "path-forbidden", ExitCode.FAILURE, "Run as a user who may read it, such as the broker's own."
    NOT_A_LOG_DIR = (
        "not-a-log-dir",
        ExitCode.USAGE,
        "Give a broker's log directory: the folder that holds __remote_log_metadata-0 and its siblings.",
    )
    UNREADABLE = "unreadable", ExitCode.FAILURE, "Look at the file with `tieredctl store inspect`."
    UNDECODABLE = (
        "undecodable",
        ExitCode.CORRUPTION,
        "Look at the file with `tieredctl store inspect`, or restore it from a replica.",
    )
    TRANSFORMED = (
        "transformed",
        ExitCode.INCOMPLETE,
        "Run `tieredctl remote read SEGMENT-ID --part log --to FILE` and inspect FILE: that is what the broker wrote.",
    )
    UNWRITABLE = "unwritable", ExitCode.FAILURE, "Check that the folder exists, is writable, and has free space."
    BROKER_UNREACHABLE = (
        "broker-unreachable",
        ExitCode.FAILURE,
        "Check host, port and firewall; TLS and SASL go in --command-config.",
    )
    BROKER_REFUSED = "broker-refused", ExitCode.FAILURE, "Check the user, password and mechanism in --command-config."
    CONFIG_REFUSED = (
        "config-refused",
        ExitCode.FAILURE,
        "Nothing was changed: correct what Kafka names, and run it again.",
    )
    SNAPSHOT_UNAVAILABLE = (
        "snapshot-unavailable",
        ExitCode.FAILURE,
        "Run it again without --snapshot, for the latest snapshot.",
    )
    NO_METADATA_TOPIC = (
        "no-metadata-topic",
        ExitCode.USAGE,
        "Is tiered storage enabled (remote.log.storage.system.enable=true) on this cluster?",
    )
    METADATA_NOT_HERE = (
        "metadata-not-here",
        ExitCode.USAGE,
        "Nothing but what Kafka's own protocol says can be seen there: docs/platforms.md has what works.",
    )
    METADATA_TOPIC_UNSAFE = (
        "metadata-topic-unsafe",
        ExitCode.USAGE,
        "Correct the settings of __remote_log_metadata first: --add-config cleanup.policy=delete,retention.ms=-1",
    )
    METADATA_PARTITIONS = (
        "metadata-partitions",
        ExitCode.USAGE,
        "Make the two equal: a broker configured with a different count exits at startup.",
    )
    MISSING_EXTRA = "missing-extra", ExitCode.FAILURE, "Install the named package."
    UNKNOWN_LAYOUT = "unknown-layout", ExitCode.USAGE, "Install the layout's plugin, or name an installed layout."
    BAD_CONFIG = "bad-config", ExitCode.USAGE, "Correct the file, or name another with TIEREDCTL_CONFIG."
    PRIVATE_KEY = "private-key", ExitCode.USAGE, "Give the right private key with --layout-option private-key=FILE."
    STORE_UNREACHABLE = "store-unreachable", ExitCode.FAILURE, "Check the store's URL, endpoint and the network."
    STORE_THROTTLED = (
        "store-throttled",
        ExitCode.FAILURE,
        "Try again later, or send the store fewer requests at a time.",
    )
    STORE_FORBIDDEN = "store-forbidden", ExitCode.FAILURE, "Check whose credentials are in use, and what they allow."
    STORE_INCAPABLE = (
        "store-incapable",
        ExitCode.FAILURE,
        "Use a store that supports this, or a newer release of its server.",
    )
    NO_CREDENTIALS = "no-credentials", ExitCode.FAILURE, "Log in as you would for the cloud's own command line."
    BUCKET_MISSING = "bucket-missing", ExitCode.USAGE, "Check the bucket's name, and the endpoint and region it is in."
    OBJECT_MISSING = "object-missing", ExitCode.FAILURE, "List what is there with `tieredctl remote ls`."
    OBJECT_ARCHIVED = (
        "object-archived",
        ExitCode.FAILURE,
        "Restore it from the archive with the cloud's own command line first; brokers cannot read it either.",
    )
    INVENTORY_UNUSABLE = (
        "inventory-unusable",
        ExitCode.FAILURE,
        "Give a complete inventory, or none: then the store is listed.",
    )
    OTHER_METADATA_MANAGER = (
        "other-metadata-manager",
        ExitCode.USAGE,
        "The topic has nothing about its segments: give --metadata-source, if that manager has a plugin.",
    )
    METADATA_INCOMPLETE = (
        "metadata-incomplete",
        ExitCode.INCOMPLETE,
        "Nothing is planned or removed on incomplete metadata: see `tieredctl metadata stats`.",
    )
    ANOTHER_CLUSTER = "another-cluster", ExitCode.USAGE, "Check --bootstrap-server and --cluster-id against the plan's."
    NO_OVERLAP = "no-overlap", ExitCode.USAGE, "Check --store, --layout and where the metadata is read from."
    AMBIGUOUS_PREFIX = "ambiguous-prefix", ExitCode.USAGE, "Name a single root in --store."
    QUARANTINE_SCANNED = (
        "quarantine-scanned",
        ExitCode.USAGE,
        "Name the root that the quarantine belongs to in --store.",
    )
    TOPICS_DOUBTFUL = (
        "topics-doubtful",
        ExitCode.USAGE,
        "Give the ids of all topics of the cluster, internal ones too, as `kafka-topics --describe` shows them.",
    )
    AGE_TOO_LOW = (
        "age-too-low",
        ExitCode.USAGE,
        "Give --min-age 1h or more, or --allow-young if nothing writes to the store.",
    )
    EPOCHS_UNKNOWN = "epochs-unknown", ExitCode.USAGE, "Name it in --untiered-topic, if it is not tiered."
    TOPIC_LIVE = "topic-live", ExitCode.USAGE, "Delete the topic first; --even-if-live removes its remote data even so."
    TOPIC_IN_USE = (
        "topic-in-use",
        ExitCode.INCOMPLETE,
        "Wait until brokers have written nothing about it for ten minutes, or give --brokers-are-done.",
    )
    TOPIC_UNCLEAR = (
        "topic-unclear",
        ExitCode.INCOMPLETE,
        "Run it while all brokers are up: a topic counts as gone when every broker reports its id as unknown.",
    )
    PLAN_TOO_LARGE = "plan-too-large", ExitCode.USAGE, "Review the plan, and raise --max-percent if it is right."
    PROMISED_MISSING = (
        "promised-objects-missing",
        ExitCode.INCOMPLETE,
        "Find them first: what looks orphaned may be theirs. If they are known to be lost, give --max-missing.",
    )
    PLAN_ALTERED = "plan-altered", ExitCode.USAGE, "Make a new plan: a plan that was altered is not applied."
    PLAN_UNSIGNED = (
        "plan-unsigned",
        ExitCode.USAGE,
        (
            "Make the plan yourself, or name its maker's key with TIEREDCTL_PLAN_KEY_FILE; or give --trust-plan, which "
            "ignores the plan's own limits."
        ),
    )
    PLAN_KEY = (
        "plan-key",
        ExitCode.USAGE,
        "Name a file that only you may read with TIEREDCTL_PLAN_KEY_FILE, or correct this one.",
    )
    PLAN_USED = "plan-used", ExitCode.USAGE, "This plan was used already; make a new one."
    PLAN_EXPIRED = "plan-expired", ExitCode.USAGE, "Make a new plan: which objects are orphaned may have changed."
    NOT_CONFIRMED = "not-confirmed", ExitCode.USAGE, "Give --yes and --cluster-id, or run it on a terminal."
    RECEIPTS_MISSING = (
        "receipts-missing",
        ExitCode.USAGE,
        "Name them with --receipts: an earlier run of this plan wrote them elsewhere.",
    )
    RECEIPTS_DAMAGED = "receipts-damaged", ExitCode.FAILURE, "Name the right receipts for this plan."
    WORLD_CHANGED = "world-changed", ExitCode.INCOMPLETE, "Look at what changed, and make a new plan."
    REMOVAL_FAILED = "removal-failed", ExitCode.INCOMPLETE, "Run it again once the cause is resolved: it resumes."
    COPY_ALTERED = (
        "copy-altered",
        ExitCode.INCOMPLETE,
        "Somebody wrote other bytes there. If the bucket keeps versions, bring back the earlier one, and run it again.",
    )
    COPY_UNVERIFIED = (
        "copy-unverified",
        ExitCode.INCOMPLETE,
        (
            "Use the key that the plan was applied with; or `tieredctl orphans restore --accept-unverified`, which "
            "puts back what is in quarantine, whoever wrote it."
        ),
    )
    LOCKED = (
        "locked",
        ExitCode.LOCKED,
        "Wait for the other run to end; `tieredctl orphans unlock` shows it, and frees the lease of a dead run.",
    )
    NODE_RUNNING = "node-running", ExitCode.LOCKED, "Stop the node first: a running one writes its files itself."
    NODE_UNCLEAR = (
        "node-unclear",
        ExitCode.INCOMPLETE,
        "Name the log directory of a stopped node as it is, or a whole copy: .lock or .kafka_cleanshutdown included.",
    )
    CLOCK_SKEW = "clock-skew", ExitCode.FAILURE, "Correct the wrong clock; nothing was changed."
    LEDGER_DAMAGED = (
        "ledger-damaged",
        ExitCode.FAILURE,
        "Make a new plan; put back what this one removed with `tieredctl orphans restore PLANID --store URL`.",
    )
    LEASE_LOST = "lease-lost", ExitCode.LOCKED, "Run it again when the other run is over: it resumes."
    CHECKPOINT_UNUSABLE = (
        "checkpoint-unusable",
        ExitCode.USAGE,
        "Remove the file, or name another, to list the store again.",
    )
    REGISTRY_UNREACHABLE = (
        "registry-unreachable",
        ExitCode.FAILURE,
        "Check the URL in --schema-registry; without it, schema ids are shown and nothing is decoded.",
    )
    REGISTRY_REFUSED = (
        "registry-refused",
        ExitCode.FAILURE,
        "Give the right USER:PASSWORD in TIEREDCTL_SCHEMA_REGISTRY_USER_INFO.",
    )
    PARTS_UNUSABLE = "parts-unusable", ExitCode.USAGE, "Name another folder, or empty this one to begin again."
    MARK_UNUSABLE = "mark-unusable", ExitCode.USAGE, "Run the job again, and give the folder that it wrote."
    NO_CONTROL_PLANE = (
        "no-control-plane",
        ExitCode.USAGE,
        "Give --control-plane, for example --control-plane postgresql://ROLE@HOST/DATABASE.",
    )
    CONTROL_PLANE_UNREACHABLE = (
        "control-plane-unreachable",
        ExitCode.FAILURE,
        "Check host, port, database and role; a password goes into the file that PGPASSFILE names.",
    )
    CONTROL_PLANE_REFUSED = (
        "control-plane-refused",
        ExitCode.FAILURE,
        "The role needs SELECT on files, batches, logs, producer_state and flyway_schema_history.",
    )
    CONTROL_PLANE_UNKNOWN = (
        "control-plane-unknown",
        ExitCode.INCOMPLETE,
        "Check the database's name; nothing is judged by a schema that this release of tieredctl does not know.",
    )
    CONTROL_PLANE_DOUBTFUL = (
        "control-plane-doubtful",
        ExitCode.INCOMPLETE,
        "Nothing is planned or removed by a control plane that may have lost commits.",
    )
    SPARK_FAILED = (
        "spark-failed",
        ExitCode.FAILURE,
        "Read Spark's own message above. What is a command, not a job, also runs with --engine local.",
    )
    DEMO_FAILED = "demo-failed", ExitCode.FAILURE, "Please report it, with the output above."
    FAULT = "fault", ExitCode.FAILURE, "Please report this line."
    INTERRUPTED = "interrupted", ExitCode.INTERRUPTED, "Run it again: it resumes where it stopped."


class TieredctlError(Exception):
    """A failure with a name: one sentence for people, a code for scripts, an exit code for the shell.

    `hint` overrides the table's where the caller knows better. `retry_after_seconds` is how long a server that
    throttles asks to be left alone.
    """

    def __init__(
        self, code: ErrorCode, message: str, *, hint: str | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        self.code = code
        self.message = message
        self.hint = hint if hint is not None else code.hint

    def __reduce__(self) -> tuple[Callable[..., TieredctlError], tuple[Any, ...], dict[str, Any]]:
        """Without its arguments, of which each kind has its own."""
        return _made_again, (type(self), self.args), self.__dict__

    @property
    def sentence(self) -> str:
        """The message with its full stop."""
        return self.message if self.message.endswith((".", "!", "?")) else f"{self.message}."

    @property
    def exit_code(self) -> ExitCode:
        return self.code.exit_code


def _made_again(kind: type[TieredctlError], args: tuple[Any, ...]) -> TieredctlError:
    return kind.__new__(kind, *args)


def system_error(fault: OSError | MemoryError) -> TieredctlError:
    """An error of the system that the place where it arose could not name better."""
    if isinstance(fault, MemoryError):
        return TieredctlError(ErrorCode.UNREADABLE, "There is not enough memory.", hint="")
    # Of a file that was opened by its number Python knows no name.
    named = isinstance(fault.filename, str | bytes) and fault.filename
    where = os.fsdecode(fault.filename) if named else "the input or output"
    what = f"{where}: {fault.strerror or fault}"
    if isinstance(fault, FileNotFoundError):
        return TieredctlError(ErrorCode.PATH_MISSING, f"There is no {where}") if named else _no_folder(fault)
    if isinstance(fault, PermissionError):
        return TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{where} may not be read")
    if fault.errno == ENAMETOOLONG:
        return TieredctlError(ErrorCode.PATH_MISSING, what)
    if fault.errno in (ENOSPC, EDQUOT):
        hint = None if named else "Make room where the output goes, and where temporary files do (TMPDIR)."
        return TieredctlError(ErrorCode.UNWRITABLE, what, hint=hint)
    return TieredctlError(ErrorCode.UNREADABLE, what, hint="")


def _no_folder(fault: FileNotFoundError) -> TieredctlError:
    """What Python names no path for: where temporary files go, or where the process is."""
    if "temporary" in str(fault):
        hint = "Name a folder that may be written to with TMPDIR."
        return TieredctlError(ErrorCode.UNWRITABLE, "There is no folder for temporary files.", hint=hint)
    hint = "Change to a folder that exists."
    return TieredctlError(ErrorCode.PATH_MISSING, "The current folder no longer exists.", hint=hint)


class DecodeError(TieredctlError):
    """Bytes that do not follow their format. `position` counts bytes from the start of the input."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(ErrorCode.UNDECODABLE, f"{message} at byte {position}")
        self.reason = message
        self.position = position


class UnfoldsTooFar(DecodeError):
    """That reading bytes would take more memory than is allowed; they may follow their format."""
