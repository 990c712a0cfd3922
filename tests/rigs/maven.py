"""Kafka's jars out of Maven, and Java sources compiled against them; both resolved once and kept under `build/`."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zipfile import ZipFile

from .prerequisites import BUILD_FOLDER, RigMissing, build_folder

RIGS_FOLDER = Path(__file__).resolve().parent
JAVA_SOURCES = RIGS_FOLDER / "java"
DEFAULT_JAR_CACHE = BUILD_FOLDER / "kafka"
DEFAULT_CLASS_CACHE = BUILD_FOLDER / "rig-classes"

POM_TEMPLATE = RIGS_FOLDER / "kafka-pom.xml"
POM_WITHOUT_TOOLS = RIGS_FOLDER / "kafka-without-tools-pom.xml"
TOOLS_OF = {"4.4.0": "4.3.1"}
"""Releases of which Maven Central has the broker alone, and the release whose tools and test jars serve them."""
_MOVED_PACKAGE = "org/apache/kafka/common/utils/"
"""4.4.0 took classes out of it that the tools of 4.3.1 use."""
REQUIRED_JAVA = 17
REQUIRED_MAVEN = (3, 8)
MAVEN_TIMEOUT_SECONDS = 900
COMPILER_TIMEOUT_SECONDS = 180


class CompilationFailed(Exception):
    """`javac` refused the sources of a rig; the text holds its messages."""


@dataclass(frozen=True)
class KafkaJars:
    """One Kafka version's jars in one folder."""

    version: str
    folder: Path

    @property
    def class_path(self) -> str:
        """What `java -cp` takes; the star is for Java, not for a shell."""
        return str(self.folder / "*")

    @property
    def release(self) -> tuple[int, ...]:
        """The version as numbers, for comparisons: `(3, 9, 1)`."""
        return tuple(int(part) for part in self.version.split("."))


QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A compiler or a collector of many threads never pays for a process that is small and short-lived."""


def java_command(name: str = "java") -> str:
    """The path of `java`, `javac` or `keytool` of a JDK that is new enough, from `JAVA_HOME` or `PATH`.

    Raises RigMissing when there is none.
    """
    command = _locate_java_command(name)
    version = _java_major_version(_locate_java_command("java"))
    if version < REQUIRED_JAVA:
        raise RigMissing(f"a JDK {REQUIRED_JAVA} or newer is needed, and `java` here is version {version}")
    return command


def kafka_jars(version: str, cache_folder: Path = DEFAULT_JAR_CACHE) -> KafkaJars:
    """Kafka `version`'s jars, resolved through Maven into `cache_folder/version` unless they are there already.

    The folder appears whole or not at all: of several processes that ask for it at once, one resolves. Raises
    RigMissing when a JDK or Maven is absent or too old, and when Maven cannot resolve the jars.
    """
    java_command("javac")
    folder = cache_folder / version
    if not folder.is_dir():
        build_folder(folder, lambda unfinished: _copy_jars(version, unfinished))
    return KafkaJars(version, folder)


def compile_java(sources: Sequence[Path], class_path: str, out_dir: Path = DEFAULT_CLASS_CACHE) -> Path:
    """The folder with the classes of `sources`, compiled against `class_path` unless the same bytes were before.

    The folder is a child of `out_dir` named by the hash of the sources and the class path. Raises RigMissing without a
    JDK, and CompilationFailed when `javac` refuses.
    """
    fingerprint = hashlib.sha256(class_path.encode())
    for source in sources:
        fingerprint.update(f"\0{source.name}\0".encode())
        fingerprint.update(source.read_bytes())
    folder = out_dir / fingerprint.hexdigest()[:20]
    if not folder.is_dir():
        build_folder(folder, lambda unfinished: _compile(sources, class_path, unfinished))
    return folder


def _copy_jars(version: str, folder: Path) -> None:
    if version not in TOOLS_OF:
        _resolve(version, POM_TEMPLATE.read_text(encoding="utf-8"), folder)
        return
    tools = TOOLS_OF[version]
    pom = POM_WITHOUT_TOOLS.read_text(encoding="utf-8").replace("@TOOLS_VERSION@", tools)
    _resolve(version, pom, folder)
    _add_moved_classes(kafka_jars(tools).folder / f"kafka-clients-{tools}.jar", folder / f"kafka-clients-{version}.jar")


def _add_moved_classes(earlier: Path, later: Path) -> None:
    """Beside `later`, a jar of what only `earlier` has of the package."""
    with ZipFile(earlier) as old, ZipFile(later) as new, ZipFile(later.with_name("moved-classes.jar"), "w") as moved:
        for name in sorted({*old.namelist()} - {*new.namelist()}):
            if name.startswith(_MOVED_PACKAGE) and name.endswith(".class"):
                moved.writestr(name, old.read(name))


def _resolve(version: str, template: str, folder: Path) -> None:
    copy_dependencies(template.replace("@KAFKA_VERSION@", version), f"the jars of Kafka {version}", folder)


def copy_dependencies(pom: str, what: str, folder: Path) -> None:
    """Copies all that a pom depends on into a folder. Raises RigMissing where Maven cannot resolve `what`."""
    maven = _maven_command()
    with tempfile.TemporaryDirectory(prefix="kafka-pom-") as project:
        Path(project, "pom.xml").write_text(pom, encoding="utf-8")
        completed = subprocess.run(
            [maven, "-q", "-B", "-Dstyle.color=never", "dependency:copy-dependencies", f"-DoutputDirectory={folder}"],
            cwd=project,
            capture_output=True,
            text=True,
            timeout=MAVEN_TIMEOUT_SECONDS,
            check=False,
        )
    if completed.returncode != 0:
        raise RigMissing(f"Maven could not resolve {what}: {_first_error(completed)}")


def _first_error(completed: subprocess.CompletedProcess[str]) -> str:
    complaints = (line.removeprefix("[ERROR]").strip() for line in completed.stdout.splitlines())
    return next(filter(None, complaints), f"exit code {completed.returncode}")


def _compile(sources: Sequence[Path], class_path: str, folder: Path) -> None:
    completed = subprocess.run(
        [
            *(java_command("javac"), "-Xlint:all,-path,-classfile,-processing", "-encoding", "UTF-8", "-proc:none"),
            *("-cp", class_path, "-d", str(folder), *map(str, sources)),
        ],
        capture_output=True,
        text=True,
        timeout=COMPILER_TIMEOUT_SECONDS,
        check=False,
    )
    if completed.returncode != 0:
        raise CompilationFailed(completed.stderr.strip())


def _locate_java_command(name: str) -> str:
    java_home = os.environ.get("JAVA_HOME")
    command = shutil.which(name, path=str(Path(java_home, "bin"))) if java_home else None
    command = command or shutil.which(name)
    if command is None:
        raise RigMissing(f"a JDK {REQUIRED_JAVA} or newer is needed, and there is no `{name}` on the PATH")
    return command


@cache
def _java_major_version(java: str) -> int:
    announced = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', announced)
    if found is None:
        raise RigMissing(f"a JDK {REQUIRED_JAVA} or newer is needed, and `java -version` here tells no version")
    return int(found.group(1))


def _maven_command() -> str:
    needed = f"Maven {'.'.join(map(str, REQUIRED_MAVEN))} or newer is needed"
    maven = shutil.which("mvn")
    if maven is None:
        raise RigMissing(f"{needed}, and there is no `mvn` on the PATH")
    announced = subprocess.run([maven, "-B", "-v"], capture_output=True, text=True, timeout=60, check=False).stdout
    found = re.search(r"Apache Maven (\d+)\.(\d+)", announced)
    if found is None or (int(found.group(1)), int(found.group(2))) < REQUIRED_MAVEN:
        told = found.group(0) if found else "something that tells no version"
        raise RigMissing(f"{needed}, and `mvn` here is {told}")
    return maven
