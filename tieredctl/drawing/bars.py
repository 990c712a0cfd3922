"""Numbers as bars, of whole cells or of their eighths."""

from __future__ import annotations

from collections.abc import Sequence

_EIGHTHS = ("", *(chr(code) for code in range(0x258F, 0x2587, -1)))
"""From nothing to a whole block."""
_WHOLE = len(_EIGHTHS) - 1


def bars(values: Sequence[int], width: int, *, ascii_only: bool = False) -> list[str]:
    """A bar for each number, none longer than `width` cells, which the greatest has. A number that is not zero has some
    bar, and a greater one none that is shorter. Raises ValueError for a negative number."""
    if min(values, default=0) < 0:
        raise ValueError("a bar has no negative length")
    greatest, steps = max(values, default=0), width if ascii_only else width * _WHOLE
    lengths = [-(-value * steps // greatest) if greatest else 0 for value in values]
    if ascii_only:
        return ["#" * length for length in lengths]
    return [_EIGHTHS[_WHOLE] * (length // _WHOLE) + _EIGHTHS[length % _WHOLE] for length in lengths]
