"""The key that plans are signed with: made once, and nobody else's."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tieredctl.config.plan_key import known_key, signing_key, usable_key
from tieredctl.errors import TieredctlError


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the key will be."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    return tmp_path / "configuration/tieredctl/plan.key"


def refusal() -> str:
    with pytest.raises(TieredctlError) as refused:
        signing_key()
    assert refused.value.code == "plan-key"
    with pytest.raises(TieredctlError):
        known_key()
    return refused.value.message


def test_it_is_made_on_first_use_next_to_the_configuration_for_its_user_alone(key_file: Path) -> None:
    before = known_key()

    made = signing_key()

    assert (before, known_key(), signing_key()) == (None, made, made)
    assert len(made) == 32
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert list(key_file.parent.iterdir()) == [key_file]


def test_it_is_next_to_a_configuration_file_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(tmp_path / "some.yaml"))

    signing_key()

    assert (tmp_path / "plan.key").is_file()


def test_several_first_uses_at_once_make_one_key(key_file: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        keys = set(threads.map(lambda _: signing_key(), range(8)))

    assert keys == {signing_key()}
    assert key_file.is_file()


def test_a_key_that_is_named_is_shared(key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = signing_key()
    shared = tmp_path / "shared.key"
    key_file.rename(shared)
    monkeypatch.setenv("TIEREDCTL_PLAN_KEY_FILE", str(shared))

    assert signing_key() == known_key() == own
    assert not key_file.exists()


def test_a_key_that_is_named_is_never_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIEREDCTL_PLAN_KEY_FILE", str(tmp_path / "missing"))

    assert "there is no such file" in refusal()
    assert not (tmp_path / "missing").exists()


def test_a_key_that_others_may_read_or_write_is_refused(key_file: Path) -> None:
    signing_key()

    for mode in (0o604, 0o602, 0o640, 0o660, 0o777):
        key_file.chmod(mode)
        assert "others may read or write it" in refusal(), mode


def test_what_holds_no_key_or_is_no_file_is_refused(key_file: Path, tmp_path: Path) -> None:
    signing_key()
    key = key_file.read_bytes()
    for data in (b"", b"\n", b"00" * 31, b"zz" * 32, b"\xff" * 64, b"00" * 4_000):
        key_file.write_bytes(data)
        assert "it does not hold" in refusal(), data
    key_file.write_bytes(key)
    key_file.rename(tmp_path / "elsewhere")
    key_file.symlink_to(tmp_path / "elsewhere")
    assert "it is a link" in refusal()
    key_file.unlink()
    os.mkfifo(key_file, 0o600)
    assert "it is not a file" in refusal()
    key_file.unlink()
    key_file.mkdir()
    assert "it is not a file" in refusal()


def test_who_can_do_without_a_key_is_not_refused(key_file: Path) -> None:
    made = signing_key()
    before = usable_key()
    key_file.chmod(0o644)

    assert (before, usable_key()) == (made, None)


def test_a_key_that_cannot_be_made_is_reported_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))

    with pytest.raises(TieredctlError, match="Not a directory"):
        signing_key()
