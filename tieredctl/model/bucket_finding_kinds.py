"""What `doctor store` finds: what a bucket's settings do to tiered storage. The command that mends it is the
provider's own, and in the evidence."""

from __future__ import annotations

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import FindingKind, Severity

_COMMAND = "{command}"

BUCKET_FINDING_KINDS = (
    FindingKind(
        FindingCode.STORE_SETTING_UNKNOWN,
        Severity.WARNING,
        "the store did not answer what a setting is: it may be in the way",
        _COMMAND,
        incomplete=True,
        many="settings that the store did not report",
    ),
    FindingKind(
        FindingCode.STORE_NOT_ALL_LISTED,
        Severity.WARNING,
        "the store holds more than was looked at: what is wrong with the rest is unknown",
        "tieredctl verify …",
        incomplete=True,
    ),
    FindingKind(
        FindingCode.STORE_VERSIONS_KEPT,
        Severity.WARNING,
        "deleted objects stay as versions that no rule ends: deleting segments frees nothing",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_SOFT_DELETE,
        Severity.INFO,
        "deleted objects are kept, and paid for, for some days more",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_RETENTION_DEFAULT,
        Severity.WARNING,
        "new objects cannot be deleted for some days: retention of topics frees nothing, or fails",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_OBJECTS_HELD,
        Severity.WARNING,
        "objects have a hold or retention of their own: deleting them fails, or frees nothing",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_LIFECYCLE_EXPIRES,
        Severity.ERROR,
        "a lifecycle rule deletes objects that topics still retain",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_LIFECYCLE_ARCHIVES,
        Severity.ERROR,
        "a lifecycle rule archives objects that topics still retain: brokers cannot read them",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_ARCHIVE_TIERS,
        Severity.ERROR,
        "the store archives objects that nobody reads: brokers cannot read them",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_OBJECTS_ARCHIVED,
        Severity.ERROR,
        "objects are in a class that brokers cannot read from",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_CLASS_MINIMUM_DAYS,
        Severity.WARNING,
        "objects go to a class whose minimum days outlast the topics' retention: the rest is paid for",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_CLASS_SMALL_OBJECTS,
        Severity.WARNING,
        "objects below their class's smallest paid size are paid as larger than they are",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_CLASS_BY_USE,
        Severity.INFO,
        "the store itself moves objects that nobody reads to colder classes, at a fee for each object",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_UPLOADS_NEVER_ABORTED,
        Severity.WARNING,
        "no lifecycle rule aborts multipart uploads that were never completed: their parts are paid for",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_UPLOADS_INCOMPLETE,
        Severity.WARNING,
        "multipart uploads were never completed: their parts are paid for, and in no listing",
        "tieredctl remote multipart …",
    ),
    FindingKind(
        FindingCode.STORE_REPLICATION_KEEPS_DELETED,
        Severity.WARNING,
        "deletions are not replicated: what is deleted here stays, and is paid for, in the other bucket",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_REPLICATION_INCOMPLETE,
        Severity.WARNING,
        "replication is configured, but objects of tiered storage are not in the other bucket",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_KEY_UNUSABLE,
        Severity.ERROR,
        "a key that objects are encrypted with cannot be used: nobody can read them",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_OBJECTS_UNREADABLE,
        Severity.ERROR,
        "objects are there, but reading one fails",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_PUBLIC,
        Severity.ERROR,
        "the bucket's own settings let everybody read it",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_PUBLIC_NOT_PREVENTED,
        Severity.INFO,
        "no setting of the bucket's own prevents that it becomes public",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_OBJECT_ACLS,
        Severity.WARNING,
        "single objects may have permissions of their own, which the bucket's do not show",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_REQUESTER_PAYS,
        Severity.WARNING,
        "whoever asks pays: requests without their consent fail, as brokers' do from another account",
        _COMMAND,
    ),
    FindingKind(
        FindingCode.STORE_REQUEST_RATE,
        Severity.WARNING,
        "reading all tiered partitions at once may take more requests a second than the store answers",
        _COMMAND,
    ),
)
