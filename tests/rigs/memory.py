"""Where tests and clusters have their files: in memory, where there is room, since all is synced again and again."""

from __future__ import annotations

import os
import shutil

_FOLDER = "/dev/shm"
_ROOM = 1 << 32
IN_MEMORY = _FOLDER if os.access(_FOLDER, os.W_OK) and shutil.disk_usage(_FOLDER).free > _ROOM else None
"""None stands for where the system has its temporary files."""
