"""What is refused, by its code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tieredctl.errors import TieredctlError


@contextmanager
def refused_with(code: str, case: object = "") -> Iterator[None]:
    """Demands that what is done inside ends in an error with this code.

    Of a case of a table, what fails is told with the case.
    """
    refusal = None
    try:
        yield
    except TieredctlError as error:
        refusal = error
    assert refusal is not None, f"{case}: is not refused with {code}"
    assert refusal.code == code, f"{case}: {refusal}"
