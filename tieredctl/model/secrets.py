"""What is never shown: settings that hold passwords, keys and tokens."""

from __future__ import annotations

import re

HIDDEN = "(hidden)"
_SECRET_NAME = re.compile(
    r"passw|passphrase|pwd|secret|jaas|token|credential|user\.info|basic\.auth|connection\.string"
    r"|(api|access|account|auth|client|encryption|master|private|sas|shared|signing|storage)[._-]?key"
    r"|ssl\.key\.pem|ssl\.keystore\.key",
    re.IGNORECASE,
)
"""Rather one too many: what is hidden can still be compared."""


def is_secret(setting: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return _SECRET_NAME.search(setting) is not None
