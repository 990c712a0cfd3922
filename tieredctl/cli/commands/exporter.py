"""`tieredctl exporter`: a cluster's figures for Prometheus, until it is stopped."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from tieredctl.cli.context_places import all_contexts as all_contexts_of
from tieredctl.cli.context_places import places_of
from tieredctl.cli.options import Quiet, StuckAfter
from tieredctl.cli.outcome import say, say_error
from tieredctl.cli.places import MetadataOptions, RemoteOptions, ResultOptions
from tieredctl.cli.trouble.interruption import clear_interrupt
from tieredctl.config.contexts import Context
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.quantities import duration_ms
from tieredctl.process.metrics_server import listening_address, serving
from tieredctl.wiring.exporter import Exporter, Observation
from tieredctl.wiring.exporter_metrics import ExporterMetrics, MetricsOfContexts
from tieredctl.wiring.status import StatusPlaces

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

_LEAST_INTERVAL_MS = 1000
_GREATEST_INTERVAL_MS = 7 * 24 * 3_600_000
_CLOSING_SECONDS = 5.0
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
    all_contexts: Annotated[
        bool, typer.Option("--all-contexts", help="Watch the cluster and the store of each context.")
    ] = False,
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
    watching = _Watching(interval_ms / 1000, older_than_ms, max_topics, quiet)
    if all_contexts:
        metrics: Collector = MetricsOfContexts(watching.contexts(all_contexts_of(results.paths())))
    else:
        place, store = metadata_options.place(), remote_options.place_if_given()
        if not place.is_given and store is None:
            hint = "Give --bootstrap-server, --log-dir, --export or --store; or choose a context."
            raise TieredctlError(ErrorCode.NO_SOURCE, "There is nothing to watch.", hint=hint)
        metrics = watching.places(StatusPlaces(place if place.is_given else None, store, results.paths()))
    try:
        with serving(host, port, metrics) as url:
            if not quiet:
                say(f"Serving metrics at {url}")
            watching.go_on()
    except KeyboardInterrupt:
        clear_interrupt()  # this is how it ends
        return ExitCode.CLEAN
    finally:
        watching.close()


@dataclass(frozen=True, slots=True)
class _Watching:
    """Exporters that look each interval: one in this thread, or each in one of its own, so that none waits for another
    that hangs."""

    interval_seconds: float
    older_than_ms: int
    most_topics: int
    quiet: bool
    exporters: list[Exporter] = field(default_factory=list)
    threads: list[Thread] = field(default_factory=list)
    ended: Event = field(default_factory=Event)

    def places(self, places: StatusPlaces, name: str = "") -> ExporterMetrics:
        """Watches these; the name of a context begins what is told."""
        prefix = f"{name}: " if name else ""
        tellers = () if self.quiet else (partial(_tell, prefix), partial(_tell_loss, prefix))
        watched = Exporter(places, self.older_than_ms, self.most_topics, *tellers)
        self.exporters.append(watched)
        return ExporterMetrics(lambda: watched.latest, self.interval_seconds)

    def contexts(self, chosen: Sequence[Context]) -> dict[str, ExporterMetrics]:
        """Watches all of these. One that names no place that can be used is told, and is down."""
        metrics: dict[str, ExporterMetrics] = {}
        for context in chosen:
            try:
                metrics[context.name] = self.places(places_of(context), context.name)
            except TieredctlError as error:
                say(f"{context.name}: cannot be watched")
                say_error(error)
                metrics[context.name] = ExporterMetrics(Observation, self.interval_seconds)
        return metrics

    def go_on(self) -> NoReturn:
        """Until an interrupt, or an error that nobody foresaw in any of them."""
        while len(self.exporters) == 1:
            self.exporters[0].refresh()
            time.sleep(self.interval_seconds)
        faults: SimpleQueue[BaseException] = SimpleQueue()

        def look(watched: Exporter) -> None:
            try:
                while not self.ended.is_set():
                    watched.refresh()
                    self.ended.wait(self.interval_seconds)
            except BaseException as fault:  # noqa: BLE001 - whatever it is ends the process, as in its main thread
                faults.put(fault)

        for watched in self.exporters:
            self.threads.append(Thread(target=copy_context().run, args=(look, watched), daemon=True))
            self.threads[-1].start()
        raise faults.get()

    def close(self) -> None:
        """Closes what does not look just now: what hangs ends with the process."""
        self.ended.set()
        for thread in self.threads:
            thread.join(_CLOSING_SECONDS / len(self.threads))
        if not any(thread.is_alive() for thread in self.threads):
            for watched in self.exporters:
                watched.close()


def _tell(prefix: str, part: str, error: TieredctlError | None) -> None:
    if error is None:
        say(f"{prefix}{part}: known again")
    else:
        say(f"{prefix}{part}: not known now")
        say_error(error)


def _tell_loss(prefix: str, why: TieredctlError) -> None:
    say(f"{prefix}metadata: what was known is dropped, and it is read again from its beginning")
    say_error(why)
