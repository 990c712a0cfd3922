"""Sources of metadata that plugins bring, for clusters whose remote log metadata manager is another than Kafka's own.

Log directories, the live topic and an export are not among them. They are there wherever this package is, and a look-up
in them should not have to read first which packages are installed, nor depend on how this one was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tieredctl.plugins import PluginKind
from tieredctl.ports.metadata_source import MetadataSource

METADATA_SOURCES = PluginKind("metadata source", "tieredctl.metadata_sources")

MetadataSourceFactory = Callable[[str, Mapping[str, str]], MetadataSource]
"""What an entry point of the group `tieredctl.metadata_sources` names: the location of `--metadata-source` and the
`--metadata-source-option`s -> the source.

Its records are values as Kafka writes them to `__remote_log_metadata`, and a user partition's are all in the metadata
partition that Kafka's partitioner chooses: in partition 0 of a source that has one. Raises TieredctlError `usage` for a
location or an option that it cannot use, and whatever says best why it cannot be read.
"""


def open_metadata_source(name: str, location: str, options: Mapping[str, str]) -> MetadataSource:
    """The source of that name, to be closed.

    Raises TieredctlError `missing-extra` where it is not installed or cannot be loaded, and as its factory does.
    """
    source: MetadataSource = METADATA_SOURCES.make(name, location, options)
    return source
