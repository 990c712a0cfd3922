"""Pictures of pages for the documentation, of captured clusters: `make pictures`."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

from tests.cli.command_line import this_process
from tests.rigs.chromium import chromium, opened
from tests.rigs.pipeline_picture import pipeline_page

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
_CRASHED, _DAMAGED = "aiven-crash-4.3.1", "kafka-4.3.1"
_WIDTH, _HEIGHT = 1160, 800


def take() -> None:
    """Writes all pictures."""
    PICTURES.mkdir(exist_ok=True)
    with chromium() as browser, _clusters() as folder:
        pages = (
            ("status", _status(folder), "light"),
            ("verify", _verify(folder), "dark"),
            ("pipeline", pipeline_page(folder / _CRASHED), "light"),
        )
        for name, page, scheme in pages:
            with opened(browser, page, width=_WIDTH, color_scheme=scheme) as shown:
                shown.page.set_viewport_size({"width": _WIDTH, "height": _HEIGHT})
                shown.page.screenshot(path=PICTURES / f"report-{name}.png")


@contextmanager
def _clusters() -> Iterator[Path]:
    """What two clusters left, in a folder whose name may stand in a picture."""
    folder = Path(tempfile.gettempdir(), "kafka")
    folder.mkdir()
    try:
        for name in (_CRASHED, _DAMAGED):
            with tarfile.open(ROOT / "tests" / "captures" / f"{name}.tar.gz") as members:
                members.extractall(folder, filter="data")
        yield folder
    finally:
        shutil.rmtree(folder)


def _status(folder: Path) -> Path:
    """Of a cluster that was killed again and again, after a scan and a verification of a part."""
    places = ("--log-dir", "data", "--store", "file:bucket", "--layout", "aiven")
    with chdir(folder / _CRASHED):
        scan, verification = Path("scan.json"), Path("verification.json")
        scan.write_text(this_process("orphans", "scan", *places, "-o", "json").out)
        verification.write_text(this_process("verify", *places, "--subset", "1/3", "-o", "json").out)
        this_process("status", *places, "--result", scan, "--result", verification, "--report", "status.html")
        return Path("status.html").absolute()


def _verify(folder: Path) -> Path:
    """Of a store that lost some objects, and of which some are damaged."""
    with chdir(folder / _DAMAGED):
        for time_index in sorted(Path("remote").rglob("payments7-1-*/*.timeindex"))[:9]:
            time_index.unlink()
        log = max(Path("remote").rglob("*.log"), key=lambda file: file.stat().st_size)
        damaged = bytearray(log.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        log.write_bytes(damaged)
        store = "file:remote/kafka-tiered-storage"
        this_process("verify", "--level", "full", "--log-dir", "data", "--store", store, "--report", "verify.html")
        return Path("verify.html").absolute()


if __name__ == "__main__":
    take()
