"""Where clusters are made: in memory, where there is room for them, since all is synced to disk again and again."""

from __future__ import annotations

import os
import shutil

_FOLDER = "/dev/shm"
_ROOM = 1 << 30
IN_MEMORY = _FOLDER if os.access(_FOLDER, os.W_OK) and shutil.disk_usage(_FOLDER).free > _ROOM else None
"""None stands for where the system has its temporary files."""
