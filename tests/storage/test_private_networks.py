"""Stores in a private network: a host that only a proxy knows, and an authority that only this company has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.command_line import Outcome, own_process
from tests.rigs.buckets import BUCKET, AzureContainer, Bucket, GcsBucket, S3Bucket
from tests.rigs.certificates import self_signed
from tests.rigs.object_servers import AZURE_ACCOUNT, ObjectServer
from tests.rigs.relays import ConnectProxy, TlsFront
from tests.rigs.token_issuer import TokenIssuer

pytestmark = pytest.mark.integration

HOST, KEY, PASSWORD = "localhost", "private/a", "x9secret"
"""Nobody but the proxy has a server on its port 443: the servers would take other names for those of buckets."""
TRUST = {"s3": "AWS_CA_BUNDLE", "gs": "REQUESTS_CA_BUNDLE", "az": "REQUESTS_CA_BUNDLE"}
PATHS = {"s3": "", "gs": "", "az": f"/{AZURE_ACCOUNT}"}
FAILED = 1


@dataclass(frozen=True)
class PrivateNetwork:
    """Servers of all three clouds, behind TLS of an authority of its own and a proxy."""

    certificate: Path
    fronts: Mapping[str, TlsFront]
    proxies: Mapping[str, ConnectProxy]

    def listed(self, *, trusts: bool = True, user: str = "operator") -> Mapping[str, Outcome]:
        """What each store's listing says, all at once: in a process of its own, whose environment a library reads."""
        with ThreadPoolExecutor(len(TRUST)) as threads:
            outcomes = threads.map(lambda scheme: self._listed(scheme, trusts, user), TRUST)
            return dict(zip(TRUST, outcomes, strict=True))

    def _listed(self, scheme: str, trusts: bool, user: str) -> Outcome:
        options = [f"endpoint=https://{HOST}{PATHS[scheme]}", *(["addressing-style=path"] if scheme == "s3" else [])]
        words = [word for option in options for word in ("--store-option", option)]
        variables = {"HTTPS_PROXY": self.proxies[scheme].url.replace("operator", user)}
        variables |= {TRUST[scheme]: str(self.certificate)} if trusts else {}
        return own_process(
            *("remote", "ls", "--store", f"{scheme}://{BUCKET}/private", *words, "-o", "jsonl"), **variables
        )


@pytest.fixture
def network(
    moto: ObjectServer,
    fake_gcs_server: ObjectServer,
    azurite: ObjectServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[PrivateNetwork]:
    ports = {"s3": moto.endpoint, "gs": fake_gcs_server.endpoint, "az": azurite.endpoint}
    buckets: list[Bucket] = [S3Bucket(moto.endpoint), GcsBucket(fake_gcs_server.endpoint)]
    for bucket in (*buckets, AzureContainer(azurite.endpoint)):
        bucket.put(KEY, b"bytes")
    certificate = self_signed(HOST, datetime.now(UTC) + timedelta(days=20), tmp_path)
    with ExitStack() as stack:
        issuer = stack.enter_context(TokenIssuer())
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(service_account(issuer, tmp_path)))
        fronts = {
            scheme: stack.enter_context(TlsFront(certificate, urlsplit(endpoint).port or 0))
            for scheme, endpoint in ports.items()
        }
        proxies = {
            scheme: stack.enter_context(ConnectProxy({HOST: front.port}, "operator", PASSWORD))
            for scheme, front in fronts.items()
        }
        yield PrivateNetwork(certificate, fronts, proxies)


def service_account(issuer: TokenIssuer, folder: Path) -> Path:
    """Google's credentials, whose tokens come from an issuer of ours."""
    file = folder / "service-account.json"
    told = {"client_email": "operator@test.invalid", "token_uri": f"{issuer.url}/token", "type": "service_account"}
    file.write_text(json.dumps({**told, "private_key": issuer.private_key_pem(), "private_key_id": "k"}))
    return file


def test_stores_that_only_a_proxy_knows_are_reached_by_it_with_an_authority_of_their_own(
    network: PrivateNetwork,
) -> None:
    for scheme, outcome in network.listed().items():
        assert (outcome.exit_code, [line["key"] for line in outcome.lines()]) == (0, ["a"]), (scheme, outcome.err)
        assert set(network.proxies[scheme].connected) == {HOST}


def test_an_authority_that_is_not_trusted_is_one_sentence_and_what_to_set(network: PrivateNetwork) -> None:
    for scheme, outcome in network.listed(trusts=False).items():
        message, hint = outcome.err.splitlines()
        assert (outcome.exit_code, outcome.out) == (FAILED, "")
        assert ("is not trusted" in message, TRUST[scheme] in hint) == (True, True), outcome.err


def test_a_proxy_that_refuses_is_not_asked_again_and_named_without_its_password(network: PrivateNetwork) -> None:
    for scheme, outcome in network.listed(user="nobody").items():
        message, hint = outcome.err.splitlines()
        assert (outcome.exit_code, "proxy" in message, "HTTPS_PROXY" in hint) == (FAILED, True, True), outcome.err
        assert PASSWORD not in outcome.err
        assert network.proxies[scheme].connected == []
        # The command begins to list twice; a request that got no answer would be sent six times.
        assert network.proxies[scheme].refused.count(HOST) <= 2, scheme
