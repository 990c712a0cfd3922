"""Who signs requests to Azure Blob Storage: found as Azure's own tools find it, tried on a server that checks."""

from __future__ import annotations

import base64
import json
import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.refusals import refused_with
from tests.rigs import object_servers
from tests.rigs.availability import rig_unavailable
from tests.rigs.buckets import AZURE_API, BUCKET, AzureContainer
from tests.rigs.object_servers import AZURE_ACCOUNT, AZURE_KEY, ObjectServer
from tests.rigs.prerequisites import RigMissing
from tieredctl.errors import TieredctlError
from tieredctl.storage.azure_account import signed_in
from tieredctl.storage.azure_batch import delete_together
from tieredctl.storage.azure_connection import AzureConnection
from tieredctl.storage.registry import open_store

Environment = Callable[..., None]
PUBLIC_DOMAIN = "blob.core.windows.net"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, cloud_environment: None) -> Iterator[Environment]:
    """Sets these variables, and no other of Azure's."""
    for name in os.environ:
        if name.startswith("AZURE_"):
            monkeypatch.delenv(name)

    def set_all(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    forget_accounts()
    yield set_all
    forget_accounts()


def keys_at(endpoint: str | None, **options: str) -> list[str]:
    given = {"endpoint": endpoint, **options} if endpoint else options
    return [stored.key for stored in open_store(f"az://{BUCKET}/account", given).list()]


def signature(valid_for: timedelta = timedelta(hours=1)) -> str:
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    return generate_container_sas(
        AZURE_ACCOUNT,
        BUCKET,
        account_key=AZURE_KEY,
        permission=ContainerSasPermissions(read=True, list=True),
        expiry=datetime.now(UTC) + valid_for,
    )


@pytest.fixture
def endpoint(azurite: ObjectServer) -> str:
    AzureContainer(azurite.endpoint).put("account/a", b"1")
    return azurite.endpoint


def test_each_kind_of_credentials_opens_the_store(
    endpoint: str, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"AZURE_STORAGE_ACCOUNT": AZURE_ACCOUNT, "AZURE_STORAGE_KEY": AZURE_KEY}
    connection = f"BlobEndpoint={endpoint};AccountName={AZURE_ACCOUNT};AccountKey={AZURE_KEY}"
    by_signature = f"BlobEndpoint={endpoint};SharedAccessSignature={signature()}"
    cases: list[tuple[str | None, Mapping[str, str]]] = [
        (endpoint, key),
        (None, key | {"AZURE_STORAGE_SERVICE_ENDPOINT": endpoint}),
        (endpoint, {"AZURE_STORAGE_SAS_TOKEN": signature()}),
        (endpoint, {"AZURE_STORAGE_ACCOUNT": AZURE_ACCOUNT, "AZURE_STORAGE_SAS_TOKEN": "?" + signature()}),
        (None, {"AZURE_STORAGE_CONNECTION_STRING": connection}),
        (None, {"AZURE_STORAGE_CONNECTION_STRING": by_signature}),
        # Of several, the connection string counts.
        (None, {"AZURE_STORAGE_CONNECTION_STRING": connection} | key | {"AZURE_STORAGE_KEY": "d3Jvbmc="}),
    ]
    for number, (where, variables) in enumerate(cases):
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            forget_accounts()
            assert keys_at(where) == ["a"], number


def forget_accounts() -> None:
    """As a new process would begin."""
    from tieredctl.storage import azure_connection

    azure_connection._account.cache_clear()
    azure_connection._pipeline.cache_clear()


def test_wrong_credentials_are_refused_in_words_that_do_not_repeat_them(
    endpoint: str, monkeypatch: pytest.MonkeyPatch, environment: Environment
) -> None:
    secret = base64.b64encode(b"not to be seen").decode()
    wrong = {
        "store-forbidden": {"AZURE_STORAGE_ACCOUNT": AZURE_ACCOUNT, "AZURE_STORAGE_KEY": secret},
        "no-credentials": {"AZURE_STORAGE_ACCOUNT": AZURE_ACCOUNT, "AZURE_STORAGE_KEY": secret[:-1]},
        "usage": {"AZURE_STORAGE_CONNECTION_STRING": secret},
    }
    for code, variables in wrong.items():
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            forget_accounts()
            with pytest.raises(TieredctlError) as raised:
                keys_at(endpoint)
        assert raised.value.code == code
        assert secret[:-1] not in f"{raised.value} {raised.value.hint}"
    environment(AZURE_STORAGE_SAS_TOKEN=signature(timedelta(hours=-1)))
    forget_accounts()
    with refused_with("store-forbidden"):
        keys_at(endpoint)


def test_credentials_are_for_the_account_that_they_are_of(environment: Environment) -> None:
    from azure.core.pipeline.policies import BearerTokenCredentialPolicy

    environment(
        AZURE_STORAGE_CONNECTION_STRING=f"AccountName=acme;AccountKey={AZURE_KEY}",
        AZURE_STORAGE_ACCOUNT="acme",
        AZURE_STORAGE_KEY=AZURE_KEY,
        AZURE_STORAGE_SAS_TOKEN="sv=1&sig=2",
    )

    own, other = (signed_in(name, None, None, "az://c") for name in ("acme", "other"))

    assert (own.endpoint, own.is_azure) == ("https://acme.blob.core.windows.net", True)
    assert other.endpoint == "https://other.blob.core.windows.net"
    assert not isinstance(own.signer, BearerTokenCredentialPolicy)
    assert isinstance(other.signer, BearerTokenCredentialPolicy)


def test_an_endpoint_is_for_the_account_that_it_is_of(environment: Environment) -> None:
    environment(
        AZURE_STORAGE_ACCOUNT="test",
        AZURE_STORAGE_KEY=AZURE_KEY,
        AZURE_STORAGE_SERVICE_ENDPOINT="https://test.blob.core.windows.net/",
    )

    own, other = (signed_in(name, None, None, "az://c") for name in (None, "prod"))

    assert (own.name, own.endpoint) == ("test", "https://test.blob.core.windows.net")
    assert (other.name, other.endpoint) == ("prod", "https://prod.blob.core.windows.net")
    assert signed_in("test", None, PUBLIC_DOMAIN, "abfss:").endpoint == own.endpoint
    with refused_with("usage"):
        signed_in("test", None, "blob.core.chinacloudapi.cn", "abfss:")
    environment(AZURE_STORAGE_CONNECTION_STRING=f"AccountName=acme;AccountKey={AZURE_KEY}")
    assert signed_in("acme", None, PUBLIC_DOMAIN, "abfss:").endpoint == "https://acme.blob.core.windows.net"
    with refused_with("usage"):
        signed_in("acme", None, "blob.core.chinacloudapi.cn", "abfss:")


def test_credentials_do_not_follow_a_url_to_an_account_or_a_domain_that_nothing_else_names(
    environment: Environment,
) -> None:
    for domain in ("blob.evil.com", "evil.blob.core.windows.net", "blob.core.windows.net.evil.com"):
        with refused_with("usage"):
            signed_in("prod", None, domain, "abfss:")
    given = signed_in("prod", "https://prod.blob.example.org", "blob.example.org", "abfss:")
    assert given.endpoint == "https://prod.blob.example.org"
    for name, value in {"AZURE_STORAGE_KEY": AZURE_KEY, "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=2"}.items():
        environment(**{name: value})
        with refused_with("usage"):
            signed_in("prod", None, None, "az://c")


def test_an_account_that_nobody_names_and_a_signature_without_tls_are_wrong_usage(environment: Environment) -> None:
    with refused_with("usage"):
        signed_in(None, None, None, "az://c")
    with refused_with("usage"):  # a token of azure-identity
        signed_in("acme", "http://blobs.example.org", None, "az://c")
    environment(AZURE_STORAGE_SAS_TOKEN="sv=1&sig=2", AZURE_STORAGE_ACCOUNT="acme")
    for endpoint in ("http://blobs.example.org", "HTTP://blobs.example.org"):
        with refused_with("usage"):
            signed_in(None, endpoint, None, "az://c")
    by_signature = "BlobEndpoint=https://acme.blob.core.windows.net;SharedAccessSignature=sv=1&sig=2"
    environment(AZURE_STORAGE_CONNECTION_STRING=by_signature)
    assert signed_in(None, None, None, "az://c").signature
    with refused_with("usage"):
        signed_in(None, "http://blobs.example.org", None, "az://c")


def test_a_private_endpoint_of_nobody_knows_whom_is_not_passed_over_where_an_account_is_named(
    environment: Environment,
) -> None:
    by_signature = "BlobEndpoint=https://store.corp.example.org;SharedAccessSignature=sv=1&sig=2"
    environment(AZURE_STORAGE_CONNECTION_STRING=by_signature)
    assert signed_in(None, None, None, "az://c").endpoint == "https://store.corp.example.org"
    for endpoint, domain in ((None, None), (None, "blob.core.windows.net"), ("https://store.corp.example.org", None)):
        with refused_with("usage"):
            signed_in("acme", endpoint, domain, "az://c")


def test_a_url_may_name_the_account(environment: Environment) -> None:
    from tieredctl.storage.own_kinds import AZURE_BY_ACCOUNT

    for host, domain in {
        "acme.dfs.core.windows.net": "blob.core.windows.net",
        "acme.dfs.core.chinacloudapi.cn": "blob.core.chinacloudapi.cn",
        "acme.z12.dfs.storage.azure.net": "z12.blob.storage.azure.net",
    }.items():
        rest = f"//tiered@{host}/prod"
        store = AZURE_BY_ACCOUNT.open(rest, {}, frozenset())
        assert store.url == f"abfss:{rest}"
        assert (store.connection.account, store.connection.domain) == ("acme", domain)  # type: ignore[attr-defined]
        assert store.container == "tiered"  # type: ignore[attr-defined]
    for url in ("abfss://tiered/prod", "abfss://user:secret@acme.dfs.core.windows.net/", "abfss://c@host/", "abfss:c"):
        with refused_with("no-store"):
            open_store(url, {})
    with refused_with("usage"):
        open_store("abfss://tiered@acme.dfs.core.windows.net", {"account": "other"})


def test_a_store_is_the_same_by_the_url_that_names_its_account(endpoint: str, environment: Environment) -> None:
    environment(AZURE_STORAGE_ACCOUNT=AZURE_ACCOUNT, AZURE_STORAGE_KEY=AZURE_KEY)
    url = f"abfss://{BUCKET}@{AZURE_ACCOUNT}.dfs.core.windows.net/account"

    assert [stored.key for stored in open_store(url, {"endpoint": endpoint}).list()] == ["a"]


def token() -> str:
    """As Microsoft's would be, but for its signature, which Azurite does not check."""
    now = int(time.time())
    claims = {
        "aud": "https://storage.azure.com",
        "iss": "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/",
        "iat": now - 10,
        "nbf": now - 10,
        "exp": now + 3_600,
        "ver": "1.0",
    }
    return ".".join(_part(one) for one in ({"alg": "RS256", "typ": "JWT"}, claims, "signature"))


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@contextmanager
def token_service(tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """What gives tokens: a host's own service, or over TLS Microsoft's. Keeps the paths and bodies of its requests."""
    asked: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            asked.append((self.path, body))
            where = f"https://{self.headers['Host']}/tenant"
            answer: dict[str, object] = {"access_token": token(), "token_type": "Bearer", "expires_in": 3600}
            if "openid-configuration" in self.path:
                answer = {name: f"{where}/{name}" for name in ("issuer", "authorization_endpoint", "token_endpoint")}
            elif not tls:
                answer = {"access_token": token(), "expires_on": str(int(time.time()) + 3600), "resource": "r"}
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of this host, signed by itself, and its key."""
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("certificate")
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "certificate.pem").write_bytes(made.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    return folder / "certificate.pem", folder / "key.pem"


@pytest.fixture(scope="module")
def azurite_with_tls(certificate: tuple[Path, Path], cloud_environment: None) -> Iterator[str]:
    """The endpoint of one that takes tokens, with a container and a blob."""
    from azure.storage.blob import ContainerClient

    words = ("--oauth", "basic", "--cert", str(certificate[0]), "--key", str(certificate[1]))
    try:
        server = object_servers.azurite(*words)
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with server as running:
        endpoint = running.endpoint.replace("http:", "https:")
        credential = {"account_name": AZURE_ACCOUNT, "account_key": AZURE_KEY}
        verified: dict[str, Any] = {"connection_verify": str(certificate[0])}
        client = ContainerClient(endpoint, BUCKET, credential=credential, api_version=AZURE_API, **verified)
        client.create_container()
        client.upload_blob("account/a", b"1")
        yield endpoint


def test_a_managed_identity_opens_the_store(
    azurite_with_tls: str, certificate: tuple[Path, Path], environment: Environment
) -> None:
    with token_service() as (where, asked):
        environment(IDENTITY_ENDPOINT=where, IDENTITY_HEADER="secret", REQUESTS_CA_BUNDLE=str(certificate[0]))
        assert keys_at(azurite_with_tls) == ["a"]
        assert keys_at(azurite_with_tls) == ["a"]

    assert len(asked) in {1, 2}
    assert all("resource=https" in path for path, _ in asked)


def test_a_batch_whose_token_cannot_be_renewed_is_reported_blob_by_blob(
    azurite_with_tls: str, certificate: tuple[Path, Path], environment: Environment
) -> None:
    with token_service() as (where, _):
        environment(IDENTITY_ENDPOINT=where, IDENTITY_HEADER="secret", REQUESTS_CA_BUNDLE=str(certificate[0]))
        connection = AzureConnection(endpoint=azurite_with_tls)
        connection.signed_in("az://c")
    # Its service has ended before the first token was asked for.
    failures = delete_together(connection, "az://c", BUCKET, [("account/a", None), ("account/b", None)])

    assert [failure and failure.code for failure in failures] == ["no-credentials"] * 2


def test_a_workload_identity_opens_the_store(
    azurite_with_tls: str, certificate: tuple[Path, Path], environment: Environment, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("of-the-service-account")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*map(str, certificate))
    with token_service(tls) as (where, asked):
        environment(
            AZURE_CLIENT_ID="client",
            AZURE_TENANT_ID="tenant",
            AZURE_FEDERATED_TOKEN_FILE=str(tmp_path / "token"),
            AZURE_AUTHORITY_HOST=where,
            REQUESTS_CA_BUNDLE=str(certificate[0]),
        )
        assert keys_at(azurite_with_tls) == ["a"]

    assert any("client_assertion=of-the-service-account" in body for _, body in asked)
