"""The kinds of stores that this package brings: HDFS under each of the schemes that Hadoop has for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import Capability
from tieredctl.ports.store_kinds import Address, ClientLibrary, Opener, StoreKind

if TYPE_CHECKING:
    from tieredctl_hdfs.store import HdfsStore

_ADDRESS = re.compile(r"//(?P<host>[A-Za-z0-9][A-Za-z0-9._-]*)(?P<port>:[0-9]{1,5})?(?P<folder>(?:/[^/]+)*)/?")
_WEB, _PROTECTED = "http", "https"
_WEB_PORTS = {_WEB: ":9870", _PROTECTED: ":9871"}
"""Where namenodes have their web server unless told otherwise (`dfs.namenode.http-address`, `…https-address`)."""


def _opener(scheme: str, protocol: str, is_web: bool) -> Opener:
    """`is_web`: whether a URL's port is that of the web server, and not of Hadoop's own protocol."""

    def opened(rest: str, options: Mapping[str, str], _relied_on: frozenset[Capability]) -> HdfsStore:
        from tieredctl.storage.bucket_address import BucketAddress
        from tieredctl.storage.route import route
        from tieredctl_hdfs.connection import HdfsConnection
        from tieredctl_hdfs.store import HdfsStore

        found = _ADDRESS.fullmatch(rest)
        if found is None or not {".", ".."}.isdisjoint(rest.split("/")):
            hint = f"Write it as {scheme}://HOST/FOLDER, with :PORT where it is another."
            raise TieredctlError(
                ErrorCode.NO_STORE, f"{scheme + ':' + rest!r} does not name a folder of HDFS.", hint=hint
            )
        port = found["port"] if is_web and found["port"] else _WEB_PORTS[protocol]
        namenodes = _namenodes(options.get("namenode", f"{protocol}://{found['host']}{port}"))
        root = found["folder"].removeprefix("/")
        address = BucketAddress(scheme, found["host"] + (found["port"] or ""), f"{root}/" if root else "")
        return HdfsStore(address, HdfsConnection(namenodes, options.get("user"), route(options).ca_bundle))

    return opened


def _namenodes(text: str) -> tuple[str, ...]:
    """The URLs of the option `namenode`, parted by commas. Raises TieredctlError `usage`, which repeats no password."""
    urls = tuple(one.strip().rstrip("/") for one in text.split(","))
    for url in urls:
        if "@" in url or not _is_web_server(url):
            hint = "Write it as http://HOST:PORT, and a second one behind a comma."
            raise TieredctlError(
                ErrorCode.USAGE, "The store option namenode is not the URL of a web server.", hint=hint
            )
    return urls


def _is_web_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:
        return False
    return parts.scheme in _WEB_PORTS and bool(parts.hostname) and has_port and not parts.query and not parts.fragment


HDFS = StoreKind(
    "hdfs",
    "hdfs://HOST/FOLDER",
    Address.SERVER,
    _opener("hdfs", _WEB, is_web=False),
    frozenset(),
    options=("namenode", "user", "ca-bundle"),
    is_remote=True,
    is_proven=lambda _: True,  # it takes no condition
    library=ClientLibrary(module="urllib3", package="urllib3"),
)
WEBHDFS = replace(HDFS, scheme="webhdfs", form="webhdfs://HOST/FOLDER", open=_opener("webhdfs", _WEB, is_web=True))
SWEBHDFS = replace(
    HDFS, scheme="swebhdfs", form="swebhdfs://HOST/FOLDER", open=_opener("swebhdfs", _PROTECTED, is_web=True)
)
