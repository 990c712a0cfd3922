"""Which storage account requests go to, and who signs them: found where Azure's own tools look.

In this order, as Aiven's plugin has it: AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN,
and azure-identity's default chain (a service principal in the environment, workload identity, managed identity, `az
login`).
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from tieredctl.errors import ErrorCode, TieredctlError

_SCOPE = "https://storage.azure.com/.default"
_OWN_DOMAINS = (".core.windows.net", ".storage.azure.net", ".core.chinacloudapi.cn", ".core.usgovcloudapi.net")
_PUBLIC_DOMAIN = "blob.core.windows.net"
_OWN_BLOB_DOMAIN = re.compile(
    r"blob\.core\.(windows\.net|chinacloudapi\.cn|usgovcloudapi\.net)|z[0-9]+\.blob\.storage\.azure\.net"
)
"""What follows an account's name in the host of its blob service."""
_UNUSED = "unused"
"""Azure's library has no client of an account that is of no container, too."""


@dataclass(frozen=True, slots=True)
class AzureAccount:
    """A storage account's blob service, and who signs what is sent there."""

    name: str | None
    """None where an endpoint of a name of its own does not tell."""
    endpoint: str
    """The URL of its blob service, without a trailing slash."""
    signer: Any
    """A policy of azure-core."""
    signature: str = field(default="", repr=False)
    """The shared access signature, where that is what signs: the source of a copy needs it, too."""
    is_token_sent: bool = False
    """Whether the signer sends a token of azure-identity's, which Azure's library does over TLS alone."""

    def __post_init__(self) -> None:
        """Raises TieredctlError `usage` where what signs would be sent in clear."""
        parts = urlsplit(self.endpoint)
        if parts.scheme == "https" or not (self.signature or self.is_token_sent):
            return
        if self.is_token_sent:
            message = "A token of azure-identity is sent only over TLS."
            hint = "Give an endpoint with https:, or set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
        if not _is_this_host(parts.hostname or ""):
            message = "A shared access signature is sent only over TLS, or to this host."
            raise TieredctlError(ErrorCode.USAGE, message, hint="Give an endpoint with https:.")

    @property
    def is_azure(self) -> bool:
        """Whether it is Azure's own, and not a compatible server."""
        return (urlsplit(self.endpoint).hostname or "").endswith(_OWN_DOMAINS)


def signed_in(account: str | None, endpoint: str | None, domain: str | None, url: str) -> AzureAccount:
    """The account that the settings and the environment name; `domain` is None where the URL does not name one.

    Endpoints and credentials of an account that the environment names are not used for another one. Raises
    TieredctlError `usage` where none is named, where the environment contradicts the URL, and where a value cannot be
    used; `url` is the store's, for messages.
    """
    if text := os.environ.get("AZURE_STORAGE_CONNECTION_STRING"):
        connected = _by_connection_string(text)
        if account in {None, connected.name}:
            return replace(connected, endpoint=endpoint or _as_named(connected.endpoint, account, domain, url))
        if connected.name is None:
            message = f"AZURE_STORAGE_CONNECTION_STRING is set, but not whose it is: {url} may be another's."
            hint = "Write the store as az://CONTAINER/PREFIX, without an account, to use it; else unset it."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
    in_environment = os.environ.get("AZURE_STORAGE_ACCOUNT")
    name = account or in_environment
    where = endpoint or _endpoint(name, domain, url)
    key, token = (os.environ.get(f"AZURE_STORAGE_{one}") for one in ("KEY", "SAS_TOKEN"))
    if (key or token) and account is not None and in_environment is None:
        message = f"AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN is set, but not whose it is: {url} may be another's."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Set AZURE_STORAGE_ACCOUNT, too.")
    if name == in_environment:
        if name is not None and key:
            return AzureAccount(name, where, _by_key(name, key))
        if token:
            return _signed(name, where, token)
    return _identified(name, where)


def _endpoint(name: str | None, domain: str | None, url: str) -> str:
    """The environment's for its own account, else Azure's."""
    in_environment = os.environ.get("AZURE_STORAGE_SERVICE_ENDPOINT", "").rstrip("/")
    if in_environment and name == os.environ.get("AZURE_STORAGE_ACCOUNT"):
        return _as_named(in_environment, name, domain, url)
    if name is None:
        hint = "Give --store-option account=NAME, or set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING."
        raise TieredctlError(ErrorCode.USAGE, f"No storage account is named for {url}.", hint=hint)
    domain = domain or _PUBLIC_DOMAIN
    if not _OWN_BLOB_DOMAIN.fullmatch(domain):
        hint = "If this server may have your credentials, give --store-option endpoint=URL."
        raise TieredctlError(ErrorCode.USAGE, f"{url} does not name a domain of Azure's.", hint=hint)
    return f"https://{name}.{domain}"


def _as_named(endpoint: str, account: str | None, domain: str | None, url: str) -> str:
    """The environment's endpoint, which must be the one that the URL names, where it names one."""
    host = urlsplit(endpoint).hostname
    if domain is not None and host != f"{account}.{domain}":
        message = f"{url} names another blob service than the environment, which names {host}."
        raise TieredctlError(ErrorCode.USAGE, message, hint="To use this one, give it as --store-option endpoint=URL.")
    return endpoint


def _by_connection_string(text: str) -> AzureAccount:
    from azure.storage.blob import ContainerClient

    try:
        client = ContainerClient.from_connection_string(text, _UNUSED)
        container, _, token = client.primary_endpoint.partition("?")
    except ValueError:
        message = "AZURE_STORAGE_CONNECTION_STRING is not a connection string of a storage account."
        hint = "`az storage account show-connection-string` shows one."
        raise TieredctlError(ErrorCode.USAGE, message, hint=hint) from None
    endpoint = container.removesuffix(f"/{_UNUSED}")
    if token:
        return _signed(client.account_name, endpoint, token)
    if client.credential:
        return AzureAccount(client.account_name, endpoint, client.credential)
    return _identified(client.account_name, endpoint)


def _by_key(name: str, key: str) -> Any:
    from azure.storage.blob import ContainerClient

    # Its credential is the policy that signs; it signs for any address.
    client = ContainerClient("https://unused", _UNUSED, credential={"account_name": name, "account_key": key})
    return client.credential


def _signed(name: str | None, endpoint: str, token: str) -> AzureAccount:
    from azure.core.credentials import AzureSasCredential
    from azure.core.pipeline.policies import AzureSasCredentialPolicy

    signature = token.lstrip("?")
    return AzureAccount(name, endpoint, AzureSasCredentialPolicy(AzureSasCredential(signature)), signature)


def _identified(name: str | None, endpoint: str) -> AzureAccount:
    from azure.core.pipeline.policies import BearerTokenCredentialPolicy
    from azure.identity import DefaultAzureCredential

    # It logs each way that did not work, as a warning; what is said of it is said once, by us.
    logging.getLogger("azure.identity").addHandler(logging.NullHandler())
    signer = BearerTokenCredentialPolicy(DefaultAzureCredential(), _SCOPE)
    return AzureAccount(name, endpoint, signer, is_token_sent=True)


def _is_this_host(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
