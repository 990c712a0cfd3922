"""Tries out which conditions an unknown server honours, on objects made for the purpose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import RESERVED_FOLDER, Capability, DeletionOutcome, WritableObjectStore

TRIAL_FOLDER = RESERVED_FOLDER + "trial"


def capabilities_seen(relying: WritableObjectStore, plain: WritableObjectStore) -> frozenset[Capability]:
    """The capabilities that a store was seen to have. The objects made for the trial are removed again.

    `relying` is the store relying on every capability that its kind can have, `plain` relying on none. Raises
    TieredctlError where the store cannot be written to at all.
    """
    proven: set[Capability] = set()
    with trial_folder(plain) as folder:
        _look(relying, folder, proven)
        if Capability.CONDITIONAL_WRITE not in proven:
            plain.write(folder + "plain", b"0")  # what refuses everything does not refuse conditions
    return frozenset(proven)


@contextmanager
def trial_folder(store: WritableObjectStore) -> Iterator[str]:
    """The prefix of a trial's objects, which are removed again."""
    folder = f"{TRIAL_FOLDER}/{uuid4().hex}/"
    try:
        yield folder
    finally:
        with suppress(TieredctlError):
            store.delete(list(store.list(folder)))


def _look(store: WritableObjectStore, folder: str, proven: set[Capability]) -> None:
    if Capability.MULTIPART_UPLOADS in store.capabilities:
        with _unless_not_understood():
            next(store.multipart_uploads(folder), None)
            proven.add(Capability.MULTIPART_UPLOADS)
    with _unless_not_understood():
        key, copy_key = folder + "object", folder + "copy"
        past = store.put_if_absent(key, b"1")
        current = past and store.replace(past, b"22")
        if past is None or current is None or store.put_if_absent(key, b"3") or store.replace(past, b"4"):
            return
        proven.add(Capability.CONDITIONAL_WRITE)
        with _unless_not_understood():
            if store.upload(key, 1, lambda: iter((b"6",)), part_bytes=1) is None:
                proven.add(Capability.CONDITIONAL_UPLOAD)
        if store.delete([past])[0].outcome is DeletionOutcome.CHANGED:
            proven.add(Capability.CONDITIONAL_DELETE)
        elif store.put_if_absent(key, b"55") is None:
            return
        if store.copy(past, copy_key) is None:
            proven.add(Capability.CONDITIONAL_COPY)


@contextmanager
def _unless_not_understood() -> Iterator[None]:
    try:
        yield
    except TieredctlError as error:
        if error.code is not ErrorCode.UNREADABLE:
            raise
