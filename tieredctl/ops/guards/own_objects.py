"""Where tieredctl keeps what is its own in a store: all of it below one folder, which no scan looks at."""

from __future__ import annotations

from tieredctl.storage.protocol import RESERVED_FOLDER

LEASE_KEY = RESERVED_FOLDER + "lease.json"
CLOCK_KEY = RESERVED_FOLDER + "clock"
"""Written to see what time it is in the store."""
QUARANTINE = RESERVED_FOLDER + "quarantine/"

REMOVED_FOLDER = RESERVED_FOLDER + "removed/"
"""Below it, by plan, the keys of what was removed."""

TIMES_OF_RESTORED = RESERVED_FOLDER + "times/restored/"
"""Below it, how old those objects are that were put back."""
TIMES_OF_COPIES = RESERVED_FOLDER + "times/quarantine/"
"""Below it, by plan, how old those objects were whose copies are in quarantine."""


def times_of_copies(plan_id: str) -> str:
    """Where it is noted how old the objects were that a plan removed."""
    return f"{TIMES_OF_COPIES}{plan_id}/"


def ledger_key(plan_id: str) -> str:
    """What remembers that a plan was used."""
    return f"{RESERVED_FOLDER}plans/{plan_id}.json"


def receipts_folder(plan_id: str) -> str:
    """The receipts of a plan, where they are kept in the store."""
    return f"{RESERVED_FOLDER}receipts/{plan_id}/"
