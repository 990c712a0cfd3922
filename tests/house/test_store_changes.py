"""Only the remover and the guards delete a store's objects, and only they copy them. import-linter cannot see methods,
so `make lint` walks the code here: whatever is called as a store's methods are, of anything, has to be named below."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("tieredctl", "plugins", "spark")
STORES = ("tieredctl/storage/", "tieredctl/testing/")
"""The stores themselves, what a store's own check tries on objects that it has just made, and what every store has to
pass, which no command runs."""
DELETING = ("delete", "delete_version", "abort_multipart_upload")
COPYING = "copy"
GUARDS, REMOVER = "tieredctl/ops/guards/", "tieredctl/ops/orphan_removal/"
PROPOSALS, INKLESS = "plugins/tieredctl_proposals/tieredctl_proposals/", "plugins/tieredctl_inkless/tieredctl_inkless/"

ALLOWED = {
    (GUARDS + "deletion.py", "delete"): "each deletion of somebody's object, looked at afterwards",
    (GUARDS + "kept_versions.py", "delete_version"): "kept versions of what was deleted",
    (GUARDS + "comparison.py", "delete"): "a copy just made that holds other bytes",
    (GUARDS + "sealed_notes.py", "delete"): "tieredctl's own notes about what is gone",
    (GUARDS + "lease.py", "delete"): "tieredctl's own lease, where a full disk takes no release",
    (REMOVER + "apply.py", "abort_multipart_upload"): "uploads that never ended",
    (REMOVER + "preparation.py", "copy"): "to quarantine",
    (REMOVER + "putting_back.py", "copy"): "back from quarantine",
    (REMOVER + "putting_back.py", "delete"): "what was just put back and holds other bytes",
    ("tieredctl/ops/healing/object_writing.py", "copy"): "a damaged object to quarantine, before it is replaced",
    ("tieredctl/ops/orphans/scan.py", "delete"): "NumPy's, of rows",
    ("spark/tieredctl_spark/output_folder.py", "delete"): "a run's own tables in a job's output, by Hadoop",
    (PROPOSALS + "coordinator/machine.py", "delete"): "of a coordinator's state in memory",
    (PROPOSALS + "ops/diskless/simulation/run.py", "delete"): "a simulated store's",
    (INKLESS + "control_plane/postgres.py", "copy"): "PostgreSQL's COPY",
    ("spark/tieredctl_spark/tables/table_store.py", "delete"): "files that no version of the tables names",
}


def reached(code: str) -> Iterator[tuple[str, int]]:
    """The methods that code calls, or takes to be called elsewhere, each with its line. A copy of an array or of a
    dictionary takes no argument; a field of the same name is no method of anything called a store."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, has_arguments = node.func.attr, bool(node.args or node.keywords)
            if name in DELETING or (name == COPYING and has_arguments):
                yield name, node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            names = [one.value for one in node.args[1:2] if isinstance(one, ast.Constant)]
            yield from ((str(name), node.lineno) for name in names if name in (*DELETING, COPYING))
        elif isinstance(node, ast.Attribute) and _is_taken_of_a_store(node):
            yield node.attr, node.lineno


def _is_taken_of_a_store(node: ast.Attribute) -> bool:
    return node.attr in (*DELETING, COPYING) and ast.unparse(node.value).endswith("store")


def test_only_the_remover_and_the_guards_delete_and_copy() -> None:
    found: dict[tuple[str, str], list[int]] = {}
    for path in sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(STORES) and "/build/" not in name:
            for method, line in reached(path.read_text()):
                found.setdefault((name, method), []).append(line)

    strangers = {where: lines for where, lines in found.items() if where not in ALLOWED}
    assert not strangers
    assert set(ALLOWED) <= set(found)


def test_each_way_to_reach_a_method_is_seen() -> None:
    for code, method in (
        ("self.store.delete([stored])", "delete"),
        ("anything.delete_version(kept)", "delete_version"),
        ("in_parallel(store, store.delete, batches)", "delete"),
        ("getattr(store, 'abort_multipart_upload')(upload)", "abort_multipart_upload"),
        ("opened().copy(stored, key)", "copy"),
        ("partial(self._store.copy, key=key)", "copy"),
    ):
        assert method in {name for name, _ in reached(code)}, code
    assert not list(reached("receipt.copy.key; columns.copy(); how.delete"))
