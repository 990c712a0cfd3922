"""The part of GSS-API (RFC 2744) that a Kerberos client of SASL needs, in the system's libgssapi_krb5, by ctypes.

No wheel has it, and tieredctl needs no compiler. Credentials of a keytab or a cache are MIT's extension
`gss_acquire_cred_from`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from ctypes.util import find_library
from functools import cache
from typing import Any
from weakref import finalize

from tieredctl.errors import ErrorCode, TieredctlError

_LIBRARY = "libgssapi_krb5.so.2"
_CONTINUE_NEEDED, _ERRORS = 1, 0xFFFF0000
_INITIATE = 1
_MUTUAL, _SEQUENCE, _INTEGRITY = 2, 8, 32
_GSS_CODE, _MECHANISM_CODE = 1, 2


class GssError(Exception):
    """What the library reports, as a sentence without a full stop."""


class _Buffer(ctypes.Structure):
    _fields_ = (("length", c_size_t), ("value", c_void_p))


class _Oid(ctypes.Structure):
    _fields_ = (("length", c_uint32), ("elements", c_char_p))


class _OidSet(ctypes.Structure):
    _fields_ = (("count", c_size_t), ("elements", POINTER(_Oid)))


class _Pair(ctypes.Structure):
    _fields_ = (("key", c_char_p), ("value", c_char_p))


class _Pairs(ctypes.Structure):
    _fields_ = (("count", c_uint32), ("elements", POINTER(_Pair)))


def _oid(text: str) -> _Oid:
    data = bytes.fromhex(text)
    return _Oid(len(data), data)


_KERBEROS = _oid("2a864886f712010202")
_HOST_BASED_SERVICE = _oid("2a864886f71201020104")
_PRINCIPAL = _oid("2a864886f71201020201")


class SecurityContext:
    """A client's context with one service. To be closed."""

    def __init__(self, service: str, host: str, principal: str | None, store: Mapping[str, str]) -> None:
        """`store` says where credentials are: `client_keytab`, `ccache`. Raises GssError; TieredctlError where the
        library is not installed."""
        self._library = _library()
        self._context, self._credential = c_void_p(), c_void_p()
        self._names: list[c_void_p] = []
        self.is_established = False
        self.close = finalize(self, _release, self._library, self._names, self._context, self._credential)
        """Releases what the library holds: at the latest when nothing refers to this, as where a broker hung up."""
        try:
            self._target = self._name(f"{service}@{host}", _HOST_BASED_SERVICE)
            own = self._name(principal, _PRINCIPAL) if principal else c_void_p()
            pairs = (_Pair * len(store))(*(_Pair(key.encode(), value.encode()) for key, value in store.items()))
            mechanisms = _OidSet(1, ctypes.pointer(_KERBEROS))
            self._call(
                *("gss_acquire_cred_from", own, c_uint32(0xFFFFFFFF), byref(mechanisms), c_int(_INITIATE)),
                *(byref(_Pairs(len(store), pairs)), byref(self._credential), None, None),
            )
        except BaseException:
            self.close()
            raise

    def step(self, token: bytes) -> bytes:
        """The token to send after one that was received; the first is empty."""
        given, made = _buffer(token), _Buffer()
        status = self._call(
            *("gss_init_sec_context", self._credential, byref(self._context), self._target, byref(_KERBEROS)),
            *(c_uint32(_MUTUAL | _SEQUENCE | _INTEGRITY), c_uint32(0), None, byref(given), None, byref(made)),
            *(None, None),
        )
        self.is_established = not status & _CONTINUE_NEEDED
        return self._taken(made)

    def unwrapped(self, message: bytes) -> bytes:
        """A server's message, whose integrity is checked."""
        given, made = _buffer(message), _Buffer()
        self._call("gss_unwrap", self._context, byref(given), byref(made), None, None)
        return self._taken(made)

    def wrapped(self, message: bytes) -> bytes:
        """A message with its integrity, not encrypted."""
        given, made = _buffer(message), _Buffer()
        self._call("gss_wrap", self._context, c_int(0), c_uint32(0), byref(given), None, byref(made))
        return self._taken(made)

    def _name(self, text: str, kind: _Oid) -> c_void_p:
        name = c_void_p()
        self._call("gss_import_name", byref(_buffer(text.encode())), byref(kind), byref(name))
        self._names.append(name)
        return name

    def _call(self, function: str, *arguments: Any) -> int:
        minor = c_uint32()
        major = int(getattr(self._library, function)(byref(minor), *arguments))
        if major & _ERRORS:
            raise GssError(self._text(minor.value, _MECHANISM_CODE) or self._text(major, _GSS_CODE))
        return major

    def _text(self, code: int, kind: int) -> str:
        minor, more, made = c_uint32(), c_uint32(), _Buffer()
        status = self._library.gss_display_status(
            byref(minor), c_uint32(code), c_int(kind), byref(_KERBEROS), byref(more), byref(made)
        )
        return "" if not code or status & _ERRORS else self._taken(made).decode(errors="replace").rstrip(".")

    def _taken(self, made: _Buffer) -> bytes:
        data = ctypes.string_at(made.value, made.length) if made.value else b""
        minor = c_uint32()
        self._library.gss_release_buffer(byref(minor), byref(made))
        return data


def _release(library: Any, names: Sequence[c_void_p], context: c_void_p, credential: c_void_p) -> None:
    minor = c_uint32()
    for name in names:
        library.gss_release_name(byref(minor), byref(name))
    if context.value is not None:
        library.gss_delete_sec_context(byref(minor), byref(context), None)
    if credential.value is not None:
        library.gss_release_cred(byref(minor), byref(credential))


def _buffer(data: bytes) -> _Buffer:
    buffer = _Buffer(len(data), ctypes.cast(c_char_p(data), c_void_p))
    buffer.kept = data  # as long as the library may read it
    return buffer


@cache
def _library() -> Any:
    for name in (_LIBRARY, find_library("gssapi_krb5")):
        if name is None:
            continue
        try:
            library = ctypes.CDLL(name)
            for function in _FUNCTIONS:
                getattr(library, function).restype = c_uint32
        except (OSError, AttributeError):  # not there, or without MIT's extension, as Heimdal's is
            continue
        return library
    hint = "Install MIT Kerberos's library: Debian's package libgssapi-krb5-2, Red Hat's krb5-libs."
    raise TieredctlError(ErrorCode.MISSING_EXTRA, "GSSAPI needs libgssapi_krb5, which is not installed.", hint=hint)


_FUNCTIONS = (
    "gss_acquire_cred_from",
    "gss_delete_sec_context",
    "gss_display_status",
    "gss_import_name",
    "gss_init_sec_context",
    "gss_release_buffer",
    "gss_release_cred",
    "gss_release_name",
    "gss_unwrap",
    "gss_wrap",
)
