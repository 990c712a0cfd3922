"""Connections to PostgreSQL that can change nothing, and its errors in tieredctl's words."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError

if TYPE_CHECKING:
    import psycopg

_DEFAULTS = {
    "application_name": "tieredctl",
    "connect_timeout": "10",
    # A connection that was cut without a word is noticed within a minute.
    "keepalives_idle": "15",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "45000",
}
_SECRETS = ("password", "sslpassword", "oauth_client_secret")
_UNREACHABLE_CLASSES = ("08", "57", "53", "28")


def demand_no_secret(conninfo: str) -> None:
    """Raises TieredctlError `usage` for text that libpq does not understand or that holds a password, and
    `missing-extra` without psycopg. Neither message repeats any of the text."""
    for name in _settings(conninfo):
        if name in _SECRETS:
            raise TieredctlError(
                ErrorCode.USAGE,
                "--control-plane holds a password, which other users of this machine could read.",
                hint="Leave it out: put it into the file that PGPASSFILE names, or into a service file for PGSERVICE.",
            )


@contextmanager
def connected(conninfo: str) -> Iterator[Any]:
    """A connection within a transaction at repeatable read that can change nothing.

    Raises TieredctlError `control-plane-unreachable`, `control-plane-refused` and `control-plane-unknown`, also for
    errors of what is asked meanwhile.
    """
    settings = _settings(conninfo)
    import psycopg
    from psycopg.conninfo import make_conninfo

    try:
        defaults: dict[str, Any] = {name: to for name, to in _DEFAULTS.items() if name not in settings}
        with psycopg.connect(make_conninfo(conninfo, **defaults)) as opened:
            opened.read_only = True
            opened.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield opened
    except psycopg.Error as error:
        raise _named(error) from None
    except DecodeError as error:
        raise TieredctlError(ErrorCode.UNREADABLE, f"The control plane's answer: {error.message}", hint="") from None


def _settings(conninfo: str) -> dict[str, Any]:
    if importlib.util.find_spec("psycopg") is None:
        raise TieredctlError(
            ErrorCode.MISSING_EXTRA,
            "A control plane needs psycopg.",
            hint="Install it with pip install 'tieredctl[diskless]'.",
        )
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        if not conninfo.strip():
            raise ValueError
        return dict(conninfo_to_dict(conninfo))
    except (psycopg.Error, ValueError):
        # Not even what libpq says of it is repeated: it quotes the text.
        raise TieredctlError(
            ErrorCode.USAGE,
            "--control-plane is not a libpq URI.",
            hint="Write it as postgresql://ROLE@HOST:5432/DATABASE, or as service=NAME.",
        ) from None


def _named(error: psycopg.Error) -> TieredctlError:
    """An error of PostgreSQL's or libpq's, in one line."""
    from psycopg import errors

    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, errors.InsufficientPrivilege):
        return TieredctlError(ErrorCode.CONTROL_PLANE_REFUSED, f"The control plane refuses: {text}")
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn | errors.InvalidSchemaName):
        message = f"The database is not a control plane that tieredctl knows: {text}"
        return TieredctlError(ErrorCode.CONTROL_PLANE_UNKNOWN, message)
    if error.sqlstate is None or error.sqlstate.startswith(_UNREACHABLE_CLASSES):
        return TieredctlError(ErrorCode.CONTROL_PLANE_UNREACHABLE, f"The control plane does not answer: {text}")
    return TieredctlError(ErrorCode.UNREADABLE, f"The control plane could not be read: {text}", hint="")
