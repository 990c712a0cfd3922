"""Which storage account requests go to, and who signs them: found where Azure's own tools look.

In this order, as Aiven's plugin has it: AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN,
and azure-identity's default chain (a service principal in the environment, workload identity, managed identity, `az
login`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from tieredctl.errors import ErrorCode, TieredctlError

_SCOPE = "https://storage.azure.com/.default"
_OWN_DOMAINS = (".core.windows.net", ".storage.azure.net", ".core.chinacloudapi.cn", ".core.usgovcloudapi.net")
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

    @property
    def is_azure(self) -> bool:
        """Whether it is Azure's own, and not a compatible server."""
        return (urlsplit(self.endpoint).hostname or "").endswith(_OWN_DOMAINS)


def signed_in(account: str | None, endpoint: str | None, domain: str, url: str) -> AzureAccount:
    """The account that the settings and the environment name.

    Credentials of an account that the environment names are not used for another one. Raises TieredctlError `usage`
    where none is named or a value cannot be used; `url` is the store's, for messages.
    """
    if text := os.environ.get("AZURE_STORAGE_CONNECTION_STRING"):
        connected = _by_connection_string(text)
        if account in {None, connected.name}:
            return replace(connected, endpoint=endpoint or connected.endpoint)
    in_environment = os.environ.get("AZURE_STORAGE_ACCOUNT")
    name = account or in_environment
    where = endpoint or os.environ.get("AZURE_STORAGE_SERVICE_ENDPOINT", "").rstrip("/")
    if name is None and not where:
        hint = "Give --store-option account=NAME, or set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING."
        raise TieredctlError(ErrorCode.USAGE, f"No storage account is named for {url}.", hint=hint)
    where = where or f"https://{name}.{domain}"
    if in_environment in {None, name}:
        if name is not None and (key := os.environ.get("AZURE_STORAGE_KEY")):
            return AzureAccount(name, where, _by_key(name, key))
        if token := os.environ.get("AZURE_STORAGE_SAS_TOKEN"):
            return _signed(name, where, token)
    return AzureAccount(name, where, _by_identity())


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
    return AzureAccount(client.account_name, endpoint, client.credential or _by_identity())


def _by_key(name: str, key: str) -> Any:
    from azure.storage.blob import ContainerClient

    # Its credential is the policy that signs; it signs for any address.
    client = ContainerClient("https://unused", _UNUSED, credential={"account_name": name, "account_key": key})
    return client.credential


def _signed(name: str | None, endpoint: str, token: str) -> AzureAccount:
    from azure.core.credentials import AzureSasCredential
    from azure.core.pipeline.policies import AzureSasCredentialPolicy

    if endpoint.startswith("http:") and not _is_this_host(urlsplit(endpoint).hostname or ""):
        message = "A shared access signature is sent only over TLS, or to this host."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give an endpoint with https:.")
    signature = token.lstrip("?")
    return AzureAccount(name, endpoint, AzureSasCredentialPolicy(AzureSasCredential(signature)), signature)


def _by_identity() -> Any:
    from azure.core.pipeline.policies import BearerTokenCredentialPolicy
    from azure.identity import DefaultAzureCredential

    return BearerTokenCredentialPolicy(DefaultAzureCredential(), _SCOPE)


def _is_this_host(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
