"""Where tieredctl keeps its own objects in a store: all of them below one folder, which scans ignore."""

from __future__ import annotations

from tieredctl.ports.object_store import RESERVED_FOLDER

LEASE_KEY = RESERVED_FOLDER + "lease.json"
CLOCK_KEY = RESERVED_FOLDER + "clock"
"""Written to learn the store's time."""
COPY_KEY = RESERVED_FOLDER + "store-copy"
"""Empty unless something that was copied to the store may be unproven."""
QUARANTINE = RESERVED_FOLDER + "quarantine/"
LEDGER_FOLDER = RESERVED_FOLDER + "plans/"
"""Below it, by its id, the record of each plan that was used."""

ACCEPTED_FOLDER = RESERVED_FOLDER + "accepted-losses/"
"""Below it, which lost objects somebody accepted as lost."""
REMOVED_FOLDER = RESERVED_FOLDER + "removed/"
"""Below it, by plan, the keys of removed objects."""

TIMES_OF_RESTORED = RESERVED_FOLDER + "times/restored/"
"""Below it, the original times of objects that were restored."""
TIMES_OF_COPIES = RESERVED_FOLDER + "times/quarantine/"
"""Below it, by plan, the original times of objects whose copies are in quarantine."""


BYTES_OF_COPIES = RESERVED_FOLDER + "bytes/"
"""Below it, by plan, which bytes the copies in quarantine hold."""


def bytes_of_copies(plan_id: str) -> str:
    """Where the checksums of the objects that a plan removed are noted."""
    return f"{BYTES_OF_COPIES}{plan_id}/"


def times_of_copies(plan_id: str) -> str:
    """Where the original times of the objects that a plan removed are noted."""
    return f"{TIMES_OF_COPIES}{plan_id}/"


def ledger_key(plan_id: str) -> str:
    """The record that a plan was used."""
    return f"{LEDGER_FOLDER}{plan_id}.json"


def receipts_folder(plan_id: str) -> str:
    """The receipts of a plan, where they are kept in the store."""
    return f"{RESERVED_FOLDER}receipts/{plan_id}/"
