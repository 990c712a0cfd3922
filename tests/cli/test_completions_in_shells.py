"""Completion as somebody has it who types in bash, zsh or fish."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.cli.interactive_shell import SHELLS, InteractiveShell
from tests.metadata_logs import TOPIC_ID, segment_id
from tests.rigs.availability import rig_unavailable
from tests.shares import divided
from tieredctl.cli.completion.completion_cache import SeenNames, remember

pytestmark = pytest.mark.integration
BROKER = "--bootstrap-server broker:9092"
DASHED = "-w" + segment_id(7)[2:]
STRANGE = ("plain.txt", "$(touch pwned).plan", "a'b.plan", 'c"d;e.plan', "f:g.plan", "h=i.plan", "-j.plan")
TYPED = ["--bootstrap-server", "broker:9092"]


@pytest.fixture(scope="module", params=sorted(SHELLS))
def shell(request: pytest.FixtureRequest) -> Iterator[InteractiveShell]:
    """A shell of a user who has read one cluster's metadata, has a context, and files with strange names."""
    if shutil.which(request.param) is None:
        rig_unavailable(f"{request.param} is not on the PATH")
    with TemporaryDirectory(prefix="tieredctl-shell-") as name:
        folder = Path(name)
        configuration = folder / "config.yaml"
        configuration.write_text("contexts:\n  prod-eu:\n    bootstrapServer: broker:9092\n")
        configuration.chmod(0o600)
        cache = {"XDG_CACHE_HOME": str(folder / "cache")}
        seen = SeenNames()
        seen.add_topic("orders.v1", TOPIC_ID, 0)
        seen.add_segment(segment_id(7), "orders.v1", 0)
        seen.add_segment(DASHED, "orders.v1", 0)
        remember(seen, ["--bootstrap-server\0broker:9092"], cache)
        with InteractiveShell(request.param, folder, **cache, TIEREDCTL_CONFIG=str(configuration)) as opened:
            (opened.home / "sub folder").mkdir()
            for file in STRANGE:
                (opened.home / file).write_text("")
            yield opened


LINES = [
    ("metadata se", ["metadata", "segments"]),
    ("store inspect --kind offs", ["store", "inspect", "--kind", "offset-index"]),
    ("verify --output=jsonl --fail", ["verify", "--output=jsonl", "--fail-on"]),
    ("verify --output=cs", ["verify", "--output=csv"]),
    ("metadata 'segm", ["metadata", "segments"]),
    ("verify --context pr", ["verify", "--context", "prod-eu"]),
    (f"metadata segments {BROKER} --topic o", ["metadata", "segments", *TYPED, "--topic", "orders.v1"]),
    (f"metadata segments {BROKER} --topic=o", ["metadata", "segments", *TYPED, "--topic=orders.v1"]),
    (f"metadata segments {BROKER} --topic-id A", ["metadata", "segments", *TYPED, "--topic-id", TOPIC_ID]),
    (f"metadata history {BROKER} AAA", ["metadata", "history", *TYPED, segment_id(7)]),
    (f"metadata epochs {BROKER} or", ["metadata", "epochs", *TYPED, "orders.v1:"]),
    (f"metadata epochs {BROKER} orders.v1:", ["metadata", "epochs", *TYPED, "orders.v1:0"]),
    ("verify --store fi", ["verify", "--store", "file:"]),
    ("verify --store file:su", ["verify", "--store", "file:sub folder"]),
    ("store check su", ["store", "check", "sub folder"]),
    ("store check --log-dir=su", ["store", "check", "--log-dir=sub folder"]),
    ("store inspect pl", ["store", "inspect", "plain.txt"]),
    (r"orphans show \$", ["orphans", "show", "$(touch pwned).plan"]),
    ("orphans show a", ["orphans", "show", "a'b.plan"]),
    ("orphans show c", ["orphans", "show", 'c"d;e.plan']),
    ("orphans show f", ["orphans", "show", "f:g.plan"]),
    ("orphans show h", ["orphans", "show", "h=i.plan"]),
    ("orphans show -- -j", ["orphans", "show", "--", "-j.plan"]),
    ("metadata history --bootstrap-server broker:9092 -w", ["metadata", "history", *TYPED, DASHED]),
    ("no-such-command x", ["no-such-command", "x"]),
]
ALWAYS = ("metadata se", f"metadata epochs {BROKER} or", "verify --store file:su", r"orphans show \$", "orphans show f")
"""A command, a name that goes on, a folder with a space, what a shell would run, and what bash takes for two words."""


def test_a_word_is_completed(shell: InteractiveShell) -> None:
    others = divided([one for one in LINES if one[0] not in ALWAYS])
    for line, arguments in [*(one for one in LINES if one[0] in ALWAYS), *others]:
        typed = shell.completed(f"tieredctl {line}")

        assert [word.removesuffix("/") for word in typed] == arguments, line


def test_several_candidates_are_shown(shell: InteractiveShell) -> None:
    shell.expect("tieredctl completions ", "fish")

    assert shell.entered()[0] == "completions"


def test_what_is_typed_is_not_run_before_enter(shell: InteractiveShell) -> None:
    for word in ("$(touch pwned)", "'$(touch pwned)'", '"$(touch pwned)"'):
        shell.expect(f"tieredctl verify --topic {word} --export={word} --out", "put")

        assert not (shell.home / "pwned").exists(), word
        shell.entered()
        (shell.home / "pwned").unlink(missing_ok=True)
