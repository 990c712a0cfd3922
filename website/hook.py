"""What mkdocs.yml cannot say: which pages lie outside docs, which are generated, and where links to them lead."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from website.reference import reference_pages

REPOSITORY = Path(__file__).parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "examples/index.md",
    "plugins/tieredctl_aiven/README.md": "plugins/tieredctl_aiven/index.md",
    "plugins/tieredctl_hdfs/README.md": "plugins/tieredctl_hdfs/index.md",
    "plugins/tieredctl_inkless/README.md": "plugins/tieredctl_inkless/index.md",
    "plugins/tieredctl_local/README.md": "plugins/tieredctl_local/index.md",
    "plugins/tieredctl_proposals/README.md": "plugins/tieredctl_proposals/index.md",
    "spark/README.md": "spark/index.md",
}
"""Pages outside docs, and what they are in the site."""
FOLDERS = {"completions": "reference/completions.md"}
"""Folders without a README, and the page that tells of them."""
DOWNLOADS = "examples"
"""The folder whose other files are in the site too."""
SCRIPT = "website/iframe-worker.js", "assets/iframe-worker.js"
_LINK = re.compile(r"(?P<start>\]\()(?P<target>[^)#\s:]+)(?P<anchor>#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^ *```")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what is not in docs, and gives the folders named in `nav` their pages."""
    for source, uri in OUTSIDE.items():
        files.append(File.generated(config, uri, abs_src_path=str(REPOSITORY / source)))
    for path in sorted((REPOSITORY / DOWNLOADS).rglob("*")):
        if path.is_file() and path.suffix != ".md":
            files.append(File.generated(config, path.relative_to(REPOSITORY).as_posix(), abs_src_path=str(path)))
    files.append(File.generated(config, SCRIPT[1], abs_src_path=str(REPOSITORY / SCRIPT[0])))
    for name, text in reference_pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    for file in files:
        file.inclusion = InclusionLevel.INCLUDED
    uris = [file.src_uri for file in files.documentation_pages()]
    named = list(_named(config.nav or []))
    assert len(named) == len(set(named)), f"mkdocs.yml names a page twice: {named}"
    config.nav = list(_listed(config.nav or [], uris, [uri for uri in uris if "/" not in uri and uri not in named]))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Lets links that hold in the repository hold in the site."""
    source = _source(page.file)
    if source is None:
        return markdown
    uris = _uris(files)
    is_code = False
    lines = []
    for line in markdown.split("\n"):
        if _FENCE.match(line):
            is_code = not is_code
        lines.append(line if is_code else _LINK.sub(lambda link: _led(link, source, page.file.src_uri, uris), line))
    return "\n".join(lines)


def _source(file: File) -> str | None:
    """Where a page lies in the repository; None where it is generated."""
    if file.abs_src_path is None or not Path(file.abs_src_path).is_relative_to(REPOSITORY):
        return None
    return Path(file.abs_src_path).relative_to(REPOSITORY).as_posix()


def _uris(files: Files) -> dict[str, str]:
    """What of the repository is in the site, and where."""
    uris = {source: file.src_uri for file in files if (source := _source(file)) is not None}
    readme = "/README.md"
    folders = {source.removesuffix(readme): uri for source, uri in uris.items() if source.endswith(readme)}
    return uris | folders | FOLDERS


def _led(link: re.Match[str], source: str, uri: str, uris: Mapping[str, str]) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link["target"]))
    if target not in uris:
        return link[0]
    led = posixpath.relpath(uris[target], posixpath.dirname(uri) or ".")
    return f"{link['start']}{led}{link['anchor'] or ''}"


def _named(nav: Iterable[Any]) -> Iterator[str]:
    """The pages that `nav` names itself."""
    for entry in nav:
        if isinstance(entry, str):
            yield entry
        else:
            ((_, inner),) = entry.items()
            yield from _named([inner] if isinstance(inner, str) else inner)


def _listed(nav: Iterable[Any], uris: list[str], rest: list[str]) -> Iterator[Any]:
    """The entries of `nav`, where a folder stands for all pages in it, and `*` for what is named nowhere else.

    A section without pages is left out.
    """
    for entry in nav:
        if entry == "*":
            yield from rest
        elif isinstance(entry, dict):
            ((title, inner),) = entry.items()
            inside = list(_listed([inner] if isinstance(inner, str) else inner, uris, rest))
            is_page = isinstance(inner, str) and not inner.endswith("/")
            if inside:
                yield {title: inside[0] if is_page else inside}
        elif entry.endswith("/"):
            yield from (uri for uri in uris if uri.startswith(entry))
        else:
            yield entry
