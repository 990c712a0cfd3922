"""Client properties by name, and the error for those with which no client can be made."""

from __future__ import annotations

from tieredctl.errors import ErrorCode, TieredctlError

Properties = dict[str, str]


def unusable(message: str, hint: str = "Correct the file given with --command-config.") -> TieredctlError:
    """The error for properties; `message` has no full stop and no secret."""
    return TieredctlError(ErrorCode.USAGE, f"{message}.", hint=hint)
