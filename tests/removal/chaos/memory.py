"""Where clusters are made: in memory, where there is such a folder, since all is synced to disk again and again."""

from __future__ import annotations

import os

IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""None stands for where the system has its temporary files."""
