"""`tieredctl backup …`: what a cluster can be made again from, in sets beside its bucket."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import clock_ms, given_path, pairs
from tieredctl.cli.commands.backup_prune import From, prune
from tieredctl.cli.options import BootstrapController, ClusterId, DryRun, StoreOptions
from tieredctl.cli.places import ClusterOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import FindingListView, ProgressView
from tieredctl.errors import ExitCode
from tieredctl.model.clock import is_after
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import age_text, duration_ms
from tieredctl.ops.backup.key_pairs import read_identity
from tieredctl.ops.backup.run import BackupRow, BackupSetRow, events_in
from tieredctl.ops.guards.store_clock import demand_common_time
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.wiring.backup import backup_sets, check_backup, newest_restorable, run_backup
from tieredctl.wiring.places import QuorumPlace, StorePlace

To = Annotated[
    str, typer.Option("--to", metavar="URL", help="Where backup sets are written, such as s3://BUCKET/PREFIX.")
]


def run(
    *,
    to: To,
    to_option: Annotated[
        list[str] | None,
        typer.Option("--to-option", metavar="NAME=VALUE", help="A setting of --to; repeat it for several."),
    ] = None,
    bootstrap_controller: BootstrapController = None,
    controller_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=given_path,
            help="Client properties for the controllers' listener, if other than --command-config.",
        ),
    ] = None,
    cluster_options: ClusterOptions,
    cluster_id: ClusterId = None,
    full: Annotated[
        bool, typer.Option("--full", help="Write all events, not only new ones: no earlier set is needed then.")
    ] = False,
    recipient: Annotated[
        list[Path] | None,
        typer.Option(
            "--recipient",
            metavar="FILE",
            parser=given_path,
            help="Encrypt secrets to this RSA public key (PEM) instead of leaving them out; repeat it for several.",
        ),
    ] = None,
    dry_run: DryRun = False,
    view: ProgressView,
) -> ExitCode:
    """Write a backup set of a live cluster: topics with their ids, settings, users, ACLs, quotas, features, consumer
    groups' offsets, and what is new in __remote_log_metadata. Without records: those are in the remote store.

    Passwords, tokens and sensitive settings are left out and named, or encrypted to --recipient.
    Exit 5 if something could not be read.

    For example: tieredctl backup run --bootstrap-server broker:9092 --to s3://backups/kafka
    """
    del cluster_id  # whatever turns out to be another cluster is refused
    cluster = cluster_options.place()
    quorum = QuorumPlace(bootstrap_controller, cluster, controller_config or cluster_options.command_config)
    place = StorePlace(to, pairs("--to-option", to_option))
    backup = run_backup(cluster, quorum, place, clock_ms, full=full, dry_run=dry_run, recipients=recipient or ())
    manifest = backup.manifest
    view.say(*(f"Encrypted: {one.sentence}." for one in manifest.encrypted))
    view.say(*(f"Left out: {one}." for one in manifest.to_give_again(is_opened=True)))
    source = {"clusterId": manifest.cluster_id, "bootstrapServer": cluster.bootstrap_server, "to": to}
    listing = result_listing("BackupSet", source, BackupRow, backup.rows(), backup.summary() | {"dryRun": dry_run})
    code = view.show(listing, backup.findings)
    wrote = "Would write" if dry_run else "Wrote"
    view.say(f"{wrote} set {manifest.number}, with {counted(events_in(manifest), 'new event')}.")
    return code


def status(
    *,
    source: From,
    store_option: StoreOptions = None,
    max_age: Annotated[
        str, typer.Option(metavar="DURATION", help="Exit 3 if the newest restorable set is older than this.")
    ] = "26h",
    cluster_id: ClusterId = None,
    view: ProgressView,
) -> ExitCode:
    """List a cluster's backup sets, and the age of the newest that can be restored; --metrics-file has it too.

    Files are looked for, and not read: `backup verify` reads them. The age is by the older of two clocks: that of the
    machine on which the set was made, and the store's. Exit 5 if that set lacks events, 4 if a newer one is damaged.

    For example: tieredctl backup status --from s3://backups/kafka --max-age 26h
    """
    limit_ms, now_ms = duration_ms(max_age), clock_ms()
    sets = backup_sets(StorePlace(source, pairs("--store-option", store_option)), cluster_id)
    demand_common_time(sets.store, clock_ms)
    listed, newest, passed_over = newest_restorable(sets)
    written_ms = sets.written_ms()
    manifests = [one for one in listed if one.number in written_ms]  # what is pruned meanwhile is none
    dated_ms = {one.number: min(one.created_ms, written_ms[one.number]) for one in manifests}
    ages_ms = {number: now_ms - dated for number, dated in dated_ms.items()}
    rows = [
        BackupSetRow(
            one.number,
            one.created_ms,
            ages_ms[one.number],
            sum(file.size for file in one.files),
            events_in(one),
            one.base,
            len(one.unread),
        )
        for one in manifests
    ]
    restorable = next((one for one in manifests if one.number == newest), None)
    is_undated = restorable is not None and is_after(dated_ms[restorable.number], now_ms)
    age_ms = None if restorable is None or is_undated else ages_ms[restorable.number]
    findings = [
        *passed_over,
        *(
            Finding(FindingCode.BACKUP_INCOMPLETE, METADATA_TOPIC, f"set {newest} lacks events: {one}", {"what": one})
            for one in (() if restorable is None else restorable.unread)
            if one.startswith(METADATA_TOPIC)
        ),
    ]
    if is_undated:
        message = "the newest set that can be restored is dated after now: a clock is wrong, and its age is unknown"
        findings.append(Finding(FindingCode.BACKUP_OLD, sets.cluster_id, message, {"ageMs": None, "set": newest}))
    elif age_ms is None:
        findings.append(Finding(FindingCode.BACKUP_OLD, sets.cluster_id, "no set can be restored", {"ageMs": None}))
    elif age_ms > limit_ms:
        message = f"the newest set that can be restored is {age_text(age_ms)} old"
        findings.append(Finding(FindingCode.BACKUP_OLD, sets.cluster_id, message, {"ageMs": age_ms, "set": newest}))
    summary = {"sets": len(written_ms), "newestRestorable": newest, "newestRestorableAgeMs": age_ms}
    document = {"clusterId": sets.cluster_id, "from": source}
    return view.show(result_listing("BackupStatus", document, BackupSetRow, rows, summary), findings)


def verify(
    *,
    source: From,
    store_option: StoreOptions = None,
    identity: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", parser=given_path, help="See whether this private key (PEM) opens all encrypted secrets."
        ),
    ] = None,
    cluster_id: ClusterId = None,
    view: FindingListView,
) -> ExitCode:
    """Check every byte of a cluster's backup sets, and that they follow each other; no cluster is asked.

    The newest set's removal with its manifest cannot be seen: compare the number of sets with what `backup run` wrote.

    For example: tieredctl backup verify --from s3://backups/kafka
    """
    key = None if identity is None else read_identity(identity)
    sets = backup_sets(StorePlace(source, pairs("--store-option", store_option)), cluster_id)
    numbers = sets.numbers()
    check = check_backup(sets, key)
    findings, unopened = check.findings, check.with_secrets - check.opened
    outcome = f"{counted(len(findings), 'finding')}." if findings else "all are whole."
    if check.opened:
        outcome += f" The key opens the encrypted secrets of {counted(check.opened, 'set')}."
    if unopened and identity is None:
        those = counted(unopened, "set")
        outcome += f" The encrypted secrets of {those} were checked by their checksums alone."
    document = {"clusterId": sets.cluster_id, "from": source}
    summary = {"sets": len(numbers), "newest": numbers[-1] if numbers else None, "secretsUnopened": unopened}
    headline = f"Read {counted(len(numbers), 'backup set')}: {outcome}"
    if not view.is_table:
        view.say(headline)
    return view.show_findings("BackupCheck", document, findings, summary, headline)


_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_commands.command("run")(run)
_commands.command("status")(status)
_commands.command("verify")(verify)
_commands.command("prune")(prune)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)
