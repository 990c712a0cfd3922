"""`tieredctl doctor connect`: a connection to a cluster, step by step."""

from __future__ import annotations

from tieredctl.cli.places import ClusterOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ExitCode
from tieredctl.ports.connection_steps import ConnectionStep, StepOutcome

_TO_MEND = (StepOutcome.FAILED, StepOutcome.ATTENTION, StepOutcome.UNKNOWN)


def connect(*, cluster_options: ClusterOptions, view: ProgressView) -> ExitCode:
    """Show what becomes of a connection, step by step: host name, TCP, TLS and certificates, the server's versions, the
    login, the brokers that the cluster names, and which commands the user has the rights for.

    Tries one login with each server, and no other after a refused one. Changes nothing. Exit 1 if no server accepts the
    client, 3 if something needs attention or no command may be used, 5 if something is unknown.

    For example: tieredctl doctor connect --bootstrap-server broker:9092 --command-config client.properties
    """
    from tieredctl.ops.cluster.connection import all_steps, exit_code, summary
    from tieredctl.wiring.connection import connection_report

    place = cluster_options.place()
    report = connection_report(place)
    steps = all_steps(report)
    source = {"kind": "cluster", "bootstrapServer": place.bootstrap_server, "clusterId": report.cluster_id}
    listing = result_listing("DoctorConnect", source, ConnectionStep, steps, summary(report, steps))
    code = view.show(listing, code=exit_code(report, steps))
    if view.is_table:
        advice = {one.next_step: one for one in reversed(steps) if one.outcome in _TO_MEND}
        view.say(*(f"{one.subject}, {one.step}: {one.next_step}" for one in reversed(advice.values())))
    return code
