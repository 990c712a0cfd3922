"""What is never shown: settings that hold passwords, keys and tokens."""

from __future__ import annotations

import re

HIDDEN = "(hidden)"
_SECRET_NAME = re.compile(r"password|secret|jaas|token|ssl\.key\.pem|ssl\.keystore\.key")


def is_secret(setting: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return _SECRET_NAME.search(setting) is not None
