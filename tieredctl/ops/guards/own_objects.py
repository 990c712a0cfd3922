"""Where tieredctl keeps what is its own in a store: all of it below one folder, which no scan looks at."""

from __future__ import annotations

from tieredctl.storage.protocol import RESERVED_FOLDER

LEASE_KEY = RESERVED_FOLDER + "lease.json"
CLOCK_KEY = RESERVED_FOLDER + "clock"
"""Written to see what time it is in the store."""
QUARANTINE = RESERVED_FOLDER + "quarantine/"

REMOVED_FOLDER = RESERVED_FOLDER + "removed/"
"""Below it, by plan, the keys of what was removed."""


def ledger_key(plan_id: str) -> str:
    """What remembers that a plan was used."""
    return f"{RESERVED_FOLDER}plans/{plan_id}.json"


def receipts_folder(plan_id: str) -> str:
    """The receipts of a plan, where they are kept in the store."""
    return f"{RESERVED_FOLDER}receipts/{plan_id}/"
