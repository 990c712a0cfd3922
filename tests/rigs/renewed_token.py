"""A file with a bearer token that something renews, or forgets to renew."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from .token_issuer import TokenIssuer

SHORT = 4
"""How many seconds a token lasts that ends in the middle of a run."""


@dataclass
class RenewedFile:
    """A file with a token that lasts for SHORT."""

    path: Path
    issuer: TokenIssuer
    ends: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.ends.append(time.time() + SHORT)
        unfinished = self.path.with_suffix(".unfinished")
        unfinished.write_text(self.issuer.token(SHORT))
        unfinished.replace(self.path)

    def renew_in_time(self) -> None:
        """Where the token will end soon."""
        if time.time() >= self.ends[-1] - 0.4 * SHORT:
            self.renew()

    @property
    def ended(self) -> int:
        """How many tokens have ended."""
        return sum(end < time.time() for end in self.ends)
