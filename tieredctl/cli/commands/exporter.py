"""`tieredctl exporter`: a cluster's figures for Prometheus, until it is stopped."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from tieredctl.cli.options import Quiet, StuckAfter
from tieredctl.cli.outcome import say, say_error
from tieredctl.cli.places import MetadataOptions, RemoteOptions, ResultOptions
from tieredctl.cli.trouble.interruption import clear_interrupt
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.quantities import duration_ms
from tieredctl.process.metrics_server import listening_address, serving
from tieredctl.wiring.exporter import Exporter
from tieredctl.wiring.exporter_metrics import ExporterMetrics
from tieredctl.wiring.status import StatusPlaces

_LEAST_INTERVAL_MS = 1000
_GREATEST_INTERVAL_MS = 7 * 24 * 3_600_000
_DEFAULT_ADDRESS = "127.0.0.1:19405"
_HELP = """

Metrics are at http://HOST:PORT/metrics. They are as of the last look, one each --interval: a scrape asks no broker. The
metadata topic is read once and then followed; what --result names is read again when it changes. What is not known has
no sample, never zero; tieredctl_exporter_up is 0 while something does not answer. It runs until Ctrl-C or SIGTERM, and
then exits with 0.

For example: tieredctl exporter --bootstrap-server broker-1:9092 --result /var/lib/tieredctl/scan.json
"""


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this command."""
    app.command(noun, help=meaning + _HELP)(exporter)


def exporter(
    *,
    metadata_options: MetadataOptions,
    remote_options: RemoteOptions,
    results: ResultOptions,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where to serve metrics.")] = _DEFAULT_ADDRESS,
    interval: Annotated[str, typer.Option(metavar="DURATION", help="How often to look.")] = "30s",
    older_than: StuckAfter = "1h",
    max_topics: Annotated[
        int, typer.Option(min=0, metavar="N", help="The most topics with series of their own; others are one, (other).")
    ] = 100,
    quiet: Quiet = False,
) -> ExitCode:
    """Serve metrics of a cluster to Prometheus."""
    host, port = listening_address(listen)
    interval_ms, older_than_ms = duration_ms(interval), duration_ms(older_than)
    if interval_ms < _LEAST_INTERVAL_MS:
        raise TieredctlError(ErrorCode.USAGE, f"--interval {interval} is too short.", hint="Give 1s or more.")
    if interval_ms > _GREATEST_INTERVAL_MS:
        raise TieredctlError(ErrorCode.USAGE, f"--interval {interval} is too long.", hint="Give 7d or less.")
    place, store = metadata_options.place(), remote_options.place_if_given()
    if not place.is_given and store is None:
        hint = "Give --bootstrap-server, --log-dir, --export or --store; or choose a context."
        raise TieredctlError(ErrorCode.NO_SOURCE, "There is nothing to watch.", hint=hint)
    places = StatusPlaces(place if place.is_given else None, store, results.paths())
    tellers = () if quiet else (_tell, _tell_loss)
    watched = Exporter(places, older_than_ms, max_topics, *tellers)
    try:
        with serving(host, port, ExporterMetrics(lambda: watched.latest, interval_ms / 1000)) as url:
            if not quiet:
                say(f"Serving metrics at {url}")
            while True:
                watched.refresh()
                time.sleep(interval_ms / 1000)
    except KeyboardInterrupt:
        clear_interrupt()  # this is how it ends
        return ExitCode.CLEAN
    finally:
        watched.close()


def _tell(part: str, error: TieredctlError | None) -> None:
    if error is None:
        say(f"{part}: known again")
    else:
        say(f"{part}: not known now")
        say_error(error)


def _tell_loss(why: TieredctlError) -> None:
    say("metadata: what was known is dropped, and it is read again from its beginning")
    say_error(why)
