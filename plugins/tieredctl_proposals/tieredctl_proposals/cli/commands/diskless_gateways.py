"""`tieredctl diskless gateways`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from tieredctl_inkless.cli.diskless_places import MOST_COORDINATORS

from tieredctl.cli.options import Output, Quiet
from tieredctl.cli.outcome import finish
from tieredctl.cli.output import Item, Listing, OutputFormat, TableColumn
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted

_MOST_BROKERS, _MOST_RACKS = 10_000, 100
_SHOWN = 8


def _joined(name: str) -> Callable[[Item], str | None]:
    return lambda item: " ".join(map(str, item[name])) or None


def _shortened(numbers: str) -> str:
    each = numbers.split()
    return numbers if len(each) <= _SHOWN else f"{' '.join(each[:_SHOWN])} and {len(each) - _SHOWN} more"


_COLUMNS = (
    TableColumn("BROKER", "broker"),
    TableColumn("RACK", "rack"),
    TableColumn("COORDINATORS", _joined("coordinators"), people_read=_shortened),
    TableColumn("GATEWAY-FOR", _joined("gatewayFor"), people_read=_shortened),
    TableColumn("COMMIT-CALLS", "commitCalls"),
    TableColumn("NETWORK-CALLS", "networkCalls"),
)
_FIELDS = ("broker", "rack", "coordinators", "gatewayFor", "commitCalls", "networkCalls")


def gateways(
    *,
    brokers: Annotated[
        int, typer.Option(metavar="NUMBER", help="How many brokers the cluster has.", min=1, max=_MOST_BROKERS)
    ],
    racks: Annotated[
        int, typer.Option(metavar="NUMBER", help="Over how many racks they are spread.", min=1, max=_MOST_RACKS)
    ],
    coordinators: Annotated[
        int, typer.Option(metavar="NUMBER", help="Partitions of __diskless_metadata.", min=1, max=MOST_COORDINATORS)
    ],
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
) -> ExitCode:
    """Show which brokers would be produce gateways for which coordinators (KIP-1164).

    With brokers spread over racks evenly, and coordinators over brokers. A producer sends what a coordinator manages
    to a gateway in its own rack, so that a file is committed with few coordinators.
    For example: tieredctl diskless gateways --brokers 24 --racks 3 --coordinators 12
    """
    from tieredctl_proposals.coordinator.gateways import Deployment, placed_gateways
    from tieredctl_proposals.ops.diskless.gateways import gateway_rows, gateway_summary

    if racks > brokers:
        raise TieredctlError(ErrorCode.USAGE, f"{counted(brokers, 'broker')} cannot be in {racks} racks.")
    placed = placed_gateways(Deployment.even(brokers, racks, coordinators))
    summary = gateway_summary(placed)
    rows = list(gateway_rows(placed))
    listing = Listing("DisklessGateways", {"kind": "arguments"}, rows, _COLUMNS, summary, _FIELDS)
    most = summary["mostCommitCalls"]
    sentences = [
        (
            f"{counted(summary['gatewaysPerRack'], 'gateway')} in each rack for each coordinator; "
            f"a broker is a gateway for at most {counted(summary['coordinatorsPerGateway'], 'coordinator')}."
        ),
        (
            f"A file takes at most {counted(most['withoutGateways'], 'commit call')} without gateways, "
            f"{most['withGateways']} with them, {most['coLocated']} where they are co-located, "
            f"{most['overTheNetwork']} of them over the network."
        ),
    ]
    return finish(listing, output, [], quiet=quiet, sentences=sentences if output.is_table else ())
