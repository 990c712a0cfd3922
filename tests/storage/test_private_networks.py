"""Stores in a private network: a host that only a proxy knows, and an authority that only this company has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.command_line import Outcome, own_process, this_process
from tests.rigs.buckets import BUCKET, AzureContainer, Bucket, GcsBucket, S3Bucket
from tests.rigs.certificates import self_signed
from tests.rigs.object_servers import AZURE_ACCOUNT, ObjectServer
from tests.rigs.relays import ConnectProxy, TlsFront
from tests.rigs.token_issuer import TokenIssuer
from tieredctl.errors import ExitCode

pytestmark = pytest.mark.integration

HOST, KEY, PASSWORD = "localhost", "private/a", "x9secret"
"""Nobody but the proxy has a server on its port 443: the servers would take other names for those of buckets."""
TRUST = {"s3": "AWS_CA_BUNDLE", "gs": "REQUESTS_CA_BUNDLE", "az": "REQUESTS_CA_BUNDLE"}
PATHS = {"s3": "", "gs": "", "az": f"/{AZURE_ACCOUNT}"}
FAILED = 1


@dataclass(frozen=True)
class PrivateNetwork:
    """Servers of all three clouds, each behind TLS of an authority of its own and a proxy."""

    certificates: Mapping[str, Path]
    fronts: Mapping[str, TlsFront]
    proxies: Mapping[str, ConnectProxy]
    open_proxies: Mapping[str, ConnectProxy]
    """Those that want no password."""

    def listed(self, *, trusts: bool = True, user: str = "operator") -> Mapping[str, Outcome]:
        """What each store's listing says, all at once: in a process of its own, whose environment a library reads."""
        with ThreadPoolExecutor(len(TRUST)) as threads:
            outcomes = threads.map(lambda scheme: self._listed(scheme, trusts, user), TRUST)
            return dict(zip(TRUST, outcomes, strict=True))

    def _listed(self, scheme: str, trusts: bool, user: str) -> Outcome:
        variables = {"HTTPS_PROXY": self.proxies[scheme].url.replace("operator", user)}
        variables |= {TRUST[scheme]: str(self.certificates[scheme])} if trusts else {}
        return listed(scheme, words_of("--store-option", endpoint_options(scheme)), variables)

    def route(self, scheme: str) -> list[str]:
        """The store options of a way to it that needs nothing of the environment."""
        return [f"ca-bundle={self.certificates[scheme]}", f"proxy={self.open_proxies[scheme].url}"]


def endpoint_options(scheme: str) -> list[str]:
    return [f"endpoint=https://{HOST}{PATHS[scheme]}", *(["addressing-style=path"] if scheme == "s3" else [])]


def words_of(word: str, options: Sequence[str]) -> list[str]:
    return [each for option in options for each in (word, option)]


def listed(scheme: str, words: Sequence[str], variables: Mapping[str, str]) -> Outcome:
    return own_process(*("remote", "ls", "--store", f"{scheme}://{BUCKET}/private", *words, "-o", "jsonl"), **variables)


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
    certificates = {}
    for scheme in ports:
        (folder := tmp_path / scheme).mkdir()
        certificates[scheme] = self_signed(HOST, datetime.now(UTC) + timedelta(days=20), folder)
    with ExitStack() as stack:
        issuer = stack.enter_context(TokenIssuer())
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(service_account(issuer, tmp_path)))
        fronts = {
            scheme: stack.enter_context(TlsFront(certificates[scheme], urlsplit(endpoint).port or 0))
            for scheme, endpoint in ports.items()
        }
        proxies = {
            scheme: stack.enter_context(ConnectProxy({HOST: front.port}, "operator", PASSWORD))
            for scheme, front in fronts.items()
        }
        open_proxies = {
            scheme: stack.enter_context(ConnectProxy({HOST: front.port})) for scheme, front in fronts.items()
        }
        yield PrivateNetwork(certificates, fronts, proxies, open_proxies)


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


def test_a_stores_own_authority_and_proxy_count_before_those_of_the_environment(network: PrivateNetwork) -> None:
    schemes = list(TRUST)
    for scheme, other in zip(schemes, schemes[1:] + schemes[:1], strict=True):
        elsewhere = {"HTTPS_PROXY": "http://127.0.0.1:9", TRUST[scheme]: str(network.certificates[other])}
        options = [*endpoint_options(scheme), *network.route(scheme)]
        outcome = listed(scheme, words_of("--store-option", options), elsewhere)
        assert (outcome.exit_code, [line["key"] for line in outcome.lines()]) == (0, ["a"]), (scheme, outcome.err)
        wrong = [*options[:-2], f"ca-bundle={network.certificates[other]}", options[-1]]
        outcome = listed(scheme, words_of("--store-option", wrong), {})
        message, hint = outcome.err.splitlines()
        assert (outcome.exit_code, "is not trusted" in message, "ca-bundle" in hint) == (FAILED, True, True), scheme


def test_one_command_reaches_two_stores_each_by_a_way_of_its_own(network: PrivateNetwork) -> None:
    source = words_of("--store-option", [*endpoint_options("s3"), *network.route("s3")])
    destination = words_of("--to-option", [*endpoint_options("gs"), *network.route("gs")])

    compared = own_process(
        *("store", "compare", "--store", f"s3://{BUCKET}/private", *source),
        *("--to", f"gs://{BUCKET}/private", *destination, "--by", "content", "-o", "json"),
    )

    assert compared.exit_code == 0, compared.err
    assert {row["key"]: row["mark"] for row in compared.document()["items"]} == {"a": "="}
    assert {*network.open_proxies["s3"].connected} == {*network.open_proxies["gs"].connected} == {HOST}


def test_a_route_that_cannot_be_one_is_refused_before_any_request(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    wrong = [
        f"ca-bundle={tmp_path}/none.pem",
        f"ca-bundle={tmp_path}/empty.pem",
        f"ca-bundle={tmp_path}",
        "proxy=proxy.corp",
        "proxy=http://proxy.corp",
        "proxy=socks5://proxy.corp:1080",
        f"proxy=http://operator:{PASSWORD}@proxy.corp:3128",
    ]
    for scheme in TRUST:
        for option in wrong:
            outcome = this_process("remote", "ls", "--store", f"{scheme}://{BUCKET}", "--store-option", option)
            assert outcome.exit_code == ExitCode.USAGE, (scheme, option, outcome.err)
            assert PASSWORD not in outcome.err
