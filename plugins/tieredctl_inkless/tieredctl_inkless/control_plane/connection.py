"""Connections to PostgreSQL that can change nothing, and its errors in tieredctl's words."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.installation import missing_extra
from tieredctl.process.tracing import traced
from tieredctl_inkless.control_plane.queries import TIME_LIMIT

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
"""What is set unless the operator set it, in the text, its service or the environment."""
_TIME_LIMITS = {"lock_timeout": 10_000, "statement_timeout": 3_600_000}
"""In ms, where role, database, service or environment set none: a lock that somebody holds is not waited for without
end, and reading the largest table takes minutes."""
ASKER, SERVER = "tieredctl.control_plane", "control plane"
"""Who asks whom, in logs."""
_SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
_UNREACHABLE_CLASSES = ("08", "57", "53")
_REFUSALS = ("authentication failed", "no password supplied", "pg_hba.conf", "not permitted to log in")
"""What is in the texts of refused connections, for which libpq has no SQLSTATE."""


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
    """A connection within a transaction at repeatable read that can change nothing, and in which no statement waits
    without end.

    Raises TieredctlError `control-plane-unreachable`, `control-plane-refused` and `control-plane-unknown`, also for
    errors of what is asked meanwhile.
    """
    settings = _settings(conninfo)
    import psycopg
    from psycopg.conninfo import make_conninfo

    try:
        ours = {name: to for name, to in _defaults(settings.get("service")).items() if name not in settings}
        with traced(ASKER, SERVER, "connect") as asked:
            made = psycopg.connect(make_conninfo(conninfo, **ours, client_encoding="UTF8"))
            asked.answer = f"{made.info.host}:{made.info.port}/{made.info.dbname}"
        with made as opened:
            opened.read_only = True
            opened.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            for name, limit_ms in _TIME_LIMITS.items():
                opened.execute(TIME_LIMIT, {"name": name, "limit": str(limit_ms)})
            yield opened
    except psycopg.Error as error:
        raise _named(error) from None
    except DecodeError as error:
        raise TieredctlError(ErrorCode.UNREADABLE, f"The control plane's answer: {error.message}", hint="") from None


def _settings(conninfo: str) -> dict[str, Any]:
    if importlib.util.find_spec("psycopg") is None:
        raise missing_extra("A control plane needs psycopg.", "diskless")
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


def _defaults(service: str | None) -> dict[str, Any]:
    """The operator's own, from a service file or the environment, before ours.

    libpq itself would put ours first, and psycopg looks for no timeout in a service file.
    """
    from psycopg.pq import Conninfo

    with _service_in_environment(service):
        of_operator = {option.keyword.decode(): option.val for option in Conninfo.get_defaults()}
    return {name: to if (own := of_operator.get(name)) is None else own.decode() for name, to in _DEFAULTS.items()}


@contextmanager
def _service_in_environment(service: str | None) -> Iterator[None]:
    """libpq tells the settings of no other service."""
    before = os.environ.get("PGSERVICE")
    if service is not None:
        os.environ["PGSERVICE"] = service
    try:
        yield
    finally:
        if before is not None:
            os.environ["PGSERVICE"] = before
        else:
            os.environ.pop("PGSERVICE", None)


def _named(error: psycopg.Error) -> TieredctlError:
    """An error of PostgreSQL's or libpq's, in one line."""
    from psycopg import errors

    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, errors.LockNotAvailable):
        message = "The control plane does not answer: a table was locked by another session for all of lock_timeout."
        hint = "See pg_locks for who holds it, or raise lock_timeout in PGOPTIONS, and run it again."
        return TieredctlError(ErrorCode.CONTROL_PLANE_UNREACHABLE, message, hint=hint)
    if isinstance(error, errors.QueryCanceled):
        message = f"The control plane did not answer to the end: {text}."
        hint = "If that was statement_timeout, raise it in PGOPTIONS, and run it again."
        return TieredctlError(ErrorCode.CONTROL_PLANE_UNREACHABLE, message, hint=hint)
    if isinstance(error, errors.InsufficientPrivilege):
        return TieredctlError(ErrorCode.CONTROL_PLANE_REFUSED, f"The control plane refuses: {text}")
    if (error.sqlstate or "").startswith("28") or (error.sqlstate is None and any(one in text for one in _REFUSALS)):
        hint = "Check the role; its password goes into the file that PGPASSFILE names."
        return TieredctlError(ErrorCode.CONTROL_PLANE_REFUSED, f"The control plane refuses: {text}", hint=hint)
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn | errors.InvalidSchemaName):
        message = f"The database is not a control plane that tieredctl knows: {text}"
        return TieredctlError(ErrorCode.CONTROL_PLANE_UNKNOWN, message)
    if error.sqlstate is None or error.sqlstate.startswith(_UNREACHABLE_CLASSES):
        return TieredctlError(ErrorCode.CONTROL_PLANE_UNREACHABLE, f"The control plane does not answer: {text}")
    return TieredctlError(ErrorCode.UNREADABLE, f"The control plane could not be read: {text}", hint="")
