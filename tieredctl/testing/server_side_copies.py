"""What every store does that copies from others of its service (`tieredctl.ports.server_side_copies`)."""

from __future__ import annotations

from tieredctl.ports.object_store import WritableObjectStore
from tieredctl.ports.server_side_copies import CopiesFromOthers
from tieredctl.testing.store_changes import head

LARGE = bytes(range(256)) * (40 << 10)
"""More than one part of the smallest size that S3 takes."""


class ServerSideCopiesContract:
    """To be inherited by the tests of such a store, which have a fixture `of_one_service`: a source and a destination
    that can copy from it, both empty."""

    def test_a_copy_has_the_bytes_and_the_source_stays(
        self, of_one_service: tuple[WritableObjectStore, CopiesFromOthers]
    ) -> None:
        source, destination = of_one_service
        stored = source.write("a/b", LARGE)
        before = list(source.list())

        made = destination.copy_from(source, stored, "c")

        assert made is not None
        assert (made.key, made.size, made.version) == ("c", len(LARGE), head(destination, "c").version)
        assert destination.read("c") == LARGE
        assert list(source.list()) == before

    def test_a_copy_replaces_nothing(self, of_one_service: tuple[WritableObjectStore, CopiesFromOthers]) -> None:
        source, destination = of_one_service
        stored = source.write("a", LARGE)
        destination.write("a", b"theirs")

        assert destination.copy_from(source, stored, "a") is None
        assert destination.read("a") == b"theirs"

    def test_a_version_that_is_past_or_gone_is_not_copied(
        self, of_one_service: tuple[WritableObjectStore, CopiesFromOthers]
    ) -> None:
        source, destination = of_one_service
        past = source.write("a", LARGE)
        now = source.write("a", LARGE[::-1])

        assert destination.copy_from(source, past, "a") is None
        source.delete([now])
        assert destination.copy_from(source, now, "a") is None
        assert list(destination.list()) == []
