"""The system's Kerberos library, as it is found on other systems."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.sign_in import gssapi
from tieredctl.kafka.sign_in.gssapi import SecurityContext


@pytest.fixture
def _no_library_loaded() -> Iterator[None]:
    gssapi._library.cache_clear()
    yield
    gssapi._library.cache_clear()


@pytest.mark.usefixtures("_no_library_loaded")
def test_a_library_without_mits_extension_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gssapi, "find_library", lambda _: None)
    for library in ("libc.so.6", "no-such-library.so"):
        monkeypatch.setattr(gssapi, "_LIBRARY", library)

        with pytest.raises(TieredctlError) as missing:
            SecurityContext("kafka", "localhost", None, {})

        assert missing.value.code is ErrorCode.MISSING_EXTRA
