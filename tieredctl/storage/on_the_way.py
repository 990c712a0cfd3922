"""What stood in the way of a server that did not answer: its certificate, or a proxy. Libraries wrap such errors."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from typing import NamedTuple

from tieredctl.errors import ErrorCode

_PROXY_ERRORS = {"ProxyError", "ProxyConnectionError"}
_TUNNEL = re.compile(r"Tunnel connection failed: ([1-5][0-9]{2})")
_MOST_WRAPPED = 50
_LOGIN_REFUSED = "407"


class Obstacle(NamedTuple):
    """A sentence without its end, what to do, and whether that may pass."""

    message: str
    hint: str
    code: ErrorCode = ErrorCode.STORE_UNREACHABLE


def obstacle(error: BaseException, where: str, trust_variable: str) -> Obstacle | None:
    """What stood in the way to `where`; None where nothing of this kind did. `trust_variable` is the environment's that
    names a file of authorities. Nothing that an error quotes is repeated: it may be a proxy's password."""
    wrapped = [*_wrapped(error)]
    untrusted = next((one for one in wrapped if isinstance(one, ssl.SSLCertVerificationError)), None)
    if untrusted is not None:
        message = f"The certificate of {where} is not trusted: {untrusted.verify_message.rstrip('.')}"
        hint = f"Name a file with the authority that signed it: the store option ca-bundle, or {trust_variable}."
        return Obstacle(message, hint)
    if any(_PROXY_ERRORS & {kind.__name__ for kind in type(one).__mro__} for one in wrapped):
        status = next((found[1] for found in (_TUNNEL.search(str(one)) for one in wrapped) if found), None)
        message = f"The proxy does not connect to {where}" + (f" (HTTP status {status})" if status else "")
        hint = "Check the store option proxy, or HTTPS_PROXY and NO_PROXY, and the user and the password of the proxy."
        # A login is tried once: no account is locked by repetition.
        return Obstacle(message, hint, *([ErrorCode.NO_CREDENTIALS] if status == _LOGIN_REFUSED else []))
    return None


def _wrapped(error: BaseException) -> Iterator[BaseException]:
    """An error, and all that it is about: by Python's ways, and by those of urllib3, botocore and azure-core."""
    waiting, seen = [error], set[int]()
    while waiting and len(seen) < _MOST_WRAPPED:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        causes = [one.__cause__, one.__context__, getattr(one, "reason", None), getattr(one, "inner_exception", None)]
        named = getattr(one, "kwargs", None)
        causes += [*one.args, *(named.values() if isinstance(named, dict) else ())]
        waiting += [other for other in causes if isinstance(other, BaseException)]
