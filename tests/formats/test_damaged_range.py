"""What cannot be had back of a part names its bytes there and in the object."""

from __future__ import annotations

from tieredctl.errors import ExitCode
from tieredctl.ports.layout import DamagedRange

DAMAGE = DamagedRange("it does not decrypt", original=(4_096, 8_192), stored=(91, 138))


def test_its_message_names_the_first_and_the_last_byte_of_the_object() -> None:
    assert DAMAGE.reason == "bytes 91 to 137 of the object were altered: it does not decrypt"


def test_its_position_is_where_the_part_is_damaged() -> None:
    assert DAMAGE.position == 4_096
    assert DAMAGE.exit_code is ExitCode.CORRUPTION
