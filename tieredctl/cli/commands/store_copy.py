"""`tieredctl store compare` and `store copy`: one store beside another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import clock_ms, pairs
from tieredctl.cli.confirmation import ApplyChoice, demand_confirmation, known_cluster
from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.options import ClusterId, Yes
from tieredctl.cli.outcome import say_error
from tieredctl.cli.places import MetadataOptions, RemoteOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.counted import counted
from tieredctl.model.quantities import byte_count, size_text
from tieredctl.ops.store_copy.comparison import By, ComparedObject, Mark, StoreComparison
from tieredctl.ops.store_copy.copying import CopiedObject

if TYPE_CHECKING:
    from tieredctl.ops.store_copy.run import CopyRun
    from tieredctl.wiring.store_copy import StoreCopying, TwoStores

_NAMED = {
    Mark.SAME: "the same",
    Mark.ONLY_IN_SOURCE: "only in the source",
    Mark.ONLY_IN_DESTINATION: "only in the destination",
    Mark.DIFFERENT: "different",
    Mark.NOT_COMPARED: "not compared",
}


@dataclass(frozen=True, slots=True)
class DestinationOptions(OptionGroup):
    """The store that is compared with the source, or copied to."""

    to: Annotated[str, typer.Option("--to", metavar="URL", help="The other store, such as s3://BUCKET/PREFIX.")]
    to_option: Annotated[
        list[str] | None,
        typer.Option("--to-option", metavar="NAME=VALUE", help="A setting of --to; repeat it for several."),
    ] = None
    rewrap: Annotated[
        bool, typer.Option("--rewrap", help="Wrap the data keys of segments for another key pair in --to.")
    ] = False
    to_layout_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="The key pair for --rewrap: private-key=FILE and key-pair-id=ID; repeat it for both.",
        ),
    ] = None

    def beside(self, remote: RemoteOptions, metadata: MetadataOptions) -> TwoStores:
        """Both stores. Raises TieredctlError where no source was named."""
        from tieredctl.wiring.store_copy import TwoStores

        source = remote.place()
        destination = replace(source, url=self.to, options=pairs("--to-option", self.to_option))
        if self.to_layout_option and not self.rewrap:
            raise TieredctlError(ErrorCode.USAGE, "--to-layout-option is for --rewrap.")
        rewrap = pairs("--to-layout-option", self.to_layout_option) if self.rewrap else None
        return TwoStores(source, destination, metadata.place(), clock_ms(), rewrap)


def compare(
    *,
    remote_options: RemoteOptions,
    destination: DestinationOptions,
    by: Annotated[
        By, typer.Option(help="Compare sizes; checksums that both stores keep, else all bytes; or all bytes.")
    ] = By.CHECKSUM,
    metadata_options: MetadataOptions,
    view: FindingsView,
) -> ExitCode:
    """Compare two stores, object by object, in the words of rclone check.

    = is the same in both, + only in the source (--store), - only in the destination (--to), * different, ! not
    compared. With metadata, what it promises is looked for in both. Exit 3 if they differ, 5 if something could not
    be compared, 4 if a promised object is missing or short.

    For example: tieredctl store compare --store s3://kafka-tiered --to gs://kafka-copy --bootstrap-server broker:9092
    """
    from tieredctl.wiring.store_copy import compare_stores

    compared = compare_stores(destination.beside(remote_options, metadata_options), by)
    comparison = compared.comparison
    rows = (row for _, row in comparison.compared())
    listing = result_listing("StoreComparison", compared.source(), ComparedObject, rows, comparison.summary)
    code = view.show(replace(listing, reads_on=True), compared.findings, compared.exit_code)
    view.say(_counts(comparison, by))
    view.say(*_nowhere(compared.promised_nowhere), *_left_out(compared.reserved))
    return code


def copy(
    *,
    remote_options: RemoteOptions,
    destination: DestinationOptions,
    by: Annotated[
        By, typer.Option(help="What must be the same in objects that are in both: see `store compare`.")
    ] = By.SIZE,
    metadata_options: MetadataOptions,
    max_rate: Annotated[
        str | None, typer.Option(metavar="BYTES", help="Copy at most this many bytes per second: 200MB.")
    ] = None,
    choice: ApplyChoice,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    view: FindingsView,
) -> ExitCode:
    """Copy to a store what it lacks of another, and look at each copy again.

    Nothing is replaced or deleted: objects that differ are counted, and left alone. What the metadata promises is
    copied first, the oldest first; then what was added meanwhile. If interrupted, run the same command again. Exit 3
    if something is to be copied or differs, 5 if something could not be copied.

    For example: tieredctl store copy --store s3://kafka-tiered --to gs://kafka-copy --bootstrap-server broker:9092
    """
    from tieredctl.wiring.store_copy import store_copying

    rate = None if max_rate is None else byte_count(max_rate)
    if rate == 0:
        raise TieredctlError(ErrorCode.USAGE, "--max-rate 0 never ends.")
    stores = destination.beside(remote_options, metadata_options)
    with store_copying(stores, by, to_apply=choice.is_made) as copying:
        planned = copying.planned
        view.say(_counts(copying.comparison, by))
        view.say(*_left_out(copying.reserved))
        if copying.comparison.looked_at:
            read = counted(copying.comparison.looked_at, "object")
            view.say(f"An earlier copy ended before all was proven: {read} written since compared by checksum.")
        if not choice.is_made:
            return _show_plan(copying, choice, view)
        if planned.objects:
            what = f"Copying {counted(planned.objects, 'object')} ({size_text(planned.bytes)})"
            changed = known_cluster(copying.cluster_id, cluster_id)
            where = f"{what} to {stores.destination.url}"
            demand_confirmation(where, changed, yes=yes, typed_cluster_id=cluster_id)
        with copying.begun(clock_ms, rate) as run:
            return _carry_out(copying, run, by, view)


def _show_plan(copying: StoreCopying, choice: ApplyChoice, view: FindingsView) -> ExitCode:
    objects = copying.planned.objects
    summary = copying.summary() | {"applied": False}
    listing = result_listing("StoreCopyPlan", copying.source(), CopiedObject, copying.rows(), summary)
    code = view.show(listing, copying.findings, copying.comparison.exit_code(besides=(Mark.ONLY_IN_DESTINATION,)))
    view.say(*choice.advice(changes=bool(objects)), *_left_alone(copying))
    return code


def _carry_out(copying: StoreCopying, run: CopyRun, by: By, view: FindingsView) -> ExitCode:
    def rows() -> Iterator[CopiedObject]:
        yield from run.copied()
        if run.outcome.stopped is None:
            try:
                copying.look_at_destination()
            except TieredctlError as error:
                run.outcome.stopped = error  # what was copied is told all the same

    def summary() -> dict[str, object]:
        return run.summary() | {"applied": True}

    def code_of_run() -> ExitCode:
        return run.exit_code() if copying.promised_nowhere is None else worst(run.exit_code(), ExitCode.CORRUPTION)

    listing = result_listing("StoreCopy", copying.source(), CopiedObject, rows(), summary)
    code = view.show(replace(listing, reads_on=True), copying.findings, code_of_run)
    done = f"Copied {counted(run.outcome.done, 'object')} ({size_text(run.outcome.bytes)}) in "
    view.say(f"{done}{counted(run.passes, 'pass', 'passes')}. {_counts(copying.comparison, by)}")
    if run.unproven:
        there = counted(run.unproven, "object is there", "objects are there")
        view.say(f"{there} without being proven: -o wide shows which. `store compare --by content` reads them.")
    view.say(*_nowhere(copying.promised_nowhere), *_left_alone(copying))
    view.say(*(copying.settings_to_change() if run.is_whole else ()))
    if run.outcome.stopped is not None:
        say_error(run.outcome.stopped)
        code = worst(code, run.outcome.stopped.exit_code)
    return code


def _nowhere(why: str | None) -> list[str]:
    return [] if why is None else [f"The destination holds nothing that the metadata promises: {why}"]


def _left_out(urls: Sequence[str]) -> Iterator[str]:
    yield from (f"Left out: tieredctl's own objects below .tieredctl/ in {url}." for url in urls)


def _left_alone(copying: StoreCopying) -> Iterator[str]:
    different = copying.comparison.counts[Mark.DIFFERENT]
    if different:
        yield f"{counted(different, 'object')} of the destination differ: left alone. `store compare` shows which."


def _counts(comparison: StoreComparison, by: By) -> str:
    counts = comparison.counts
    named = ", ".join(f"{counts[mark]} {name}" for mark, name in _NAMED.items() if counts[mark])
    if not comparison.is_ended:
        return f"Compared by {by.value} until it stopped: {named or 'nothing'}."
    return f"Compared by {by.value}: {named or 'both are empty'}."
