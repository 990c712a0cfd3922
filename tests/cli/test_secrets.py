"""No secret is in what a log, a crash file or a bundle repeats."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tieredctl.process import redaction
from tieredctl.process.redaction import HIDDEN, redacted, redacted_words, remember_secrets

SETTINGS = [
    "ssl.key.password",
    "sasl.password",
    "AWS_SECRET_ACCESS_KEY",
    "aws_session_token",
    "clientSecret",
    "api-key",
    "PGPASSWORD",
    "x-amz-security-token",
    "sasl.oauthbearer.client.secret",
    "basic.auth.user.info",
    "AZURE_STORAGE_CONNECTION_STRING",
    "TIEREDCTL_SCHEMA_REGISTRY_USER_INFO",
    "SharedAccessSignature",
]
SIGNED = [
    "https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature={}",
    "https://storage.googleapis.com/b/k?GoogleAccessId=a%40b&Signature={}",
    "https://a.blob.core.windows.net/c/k?sv=1&sig={}&se=2",
    "GET /b/k?AWSAccessKeyId=x&Signature={} HTTP/1.1",
    "BlobEndpoint=https://a.blob.core.windows.net;SharedAccessSignature=sv=1&sig={}&se=2",
    "sv=1&se=2&sig={}",
    "http://datanode:9864/webhdfs/v1/k?op=OPEN&delegation={}&offset=0",
]
WRITTEN = [
    "{name}={secret}",
    "{name} = {secret} and more",
    "{name}: {secret}",
    "'{name}': '{secret}', 'other': 1",
    '{{"{name}": "{secret}"}}',
    "conninfo host=x {name}={secret} dbname=y",
    "{name} => {secret}",
]
URIS = ["postgresql://role:{}@host:5432/db", "https://{}@host/x", "http://u:{}@10.0.0.1:9000", "ftp://:{}@host"]
TEXTS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=12, max_size=40)
ANY_TEXT = st.text(min_size=4, max_size=40)


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set())


@given(st.sampled_from(SETTINGS), st.sampled_from(WRITTEN), TEXTS)
def test_a_setting_is_hidden_by_its_name(name: str, written: str, secret: str) -> None:
    assert secret not in redacted(written.format(name=name, secret=secret))


@given(
    st.sampled_from(SETTINGS),
    st.sampled_from(['{}="{}"', "{} : '{}'"]),
    st.text(st.characters(exclude_characters="\"'\\")),
)
def test_a_quoted_value_is_hidden_whole(name: str, written: str, secret: str) -> None:
    assert redacted(written.format(name, f"x{secret}y end")).count(HIDDEN) == 1
    assert " end" not in redacted(written.format(name, f"x{secret}y end"))


@given(st.sampled_from(SIGNED), TEXTS)
def test_the_query_of_a_signed_url_is_hidden(url: str, signature: str) -> None:
    assert signature not in redacted(f"asked {url.format(signature)} twice")


@given(st.sampled_from(URIS), st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=12))
@example("postgresql://role:{}@host:5432/db", "with@and/and:in-it")
def test_what_precedes_the_host_of_a_uri_is_hidden(uri: str, secret: str) -> None:
    allowed = not set(secret) & set("\"'<>") and (not uri.startswith("https") or not set(secret) & set("/@:"))
    assert not allowed or secret not in redacted(f"cannot reach {uri.format(secret)}")


@given(st.sampled_from(SETTINGS), ANY_TEXT, st.text(max_size=10), st.text(max_size=10))
def test_a_remembered_secret_is_hidden_wherever_it_is(name: str, secret: str, before: str, after: str) -> None:
    remember_secrets({name: secret})
    for text in (secret, repr(secret)[1:-1]):
        left = redacted(f"{before}{text}{after}")
        assert text not in left or text in HIDDEN


def test_the_key_in_a_remembered_connection_string_is_hidden_wherever_it_is() -> None:
    remember_secrets({"AZURE_STORAGE_CONNECTION_STRING": "AccountName=logs;AccountKey=c2VjcmV0Cg==;EndpointSuffix=x"})

    assert redacted("signed logs with c2VjcmV0Cg== by hand") == f"signed logs with {HIDDEN} by hand"


def test_a_line_that_is_a_setting_is_hidden_to_its_end() -> None:
    for value in ("a;hunter22", "a&hunter22", "a, hunter22", "a hunter22"):
        for written in ("{}", "first: x\n  {}", "- {}"):
            line = written.format(f"sasl.password={value}")
            assert "hunter22" not in redacted(f"{line}\nafter: it"), line
        assert redacted(f"sasl.password={value}\nafter: it").endswith("after: it")


def test_no_text_takes_long() -> None:
    """Where each character were looked at for each other, this would take minutes."""
    for piece in ("?", "?sig", "://a:", "://a:@", "passw", "eyJ" + "a-" * 10, "https://a", "Basic ", "password='"):
        redacted(piece * (100_000 // len(piece)))
    for piece in " \n":
        redacted(piece * 100_000)


@given(st.text())
def test_any_text_can_be_redacted_and_twice_is_as_once(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


def test_what_holds_no_secret_stays_as_it_is() -> None:
    for text in (
        "s3://bucket/prefix: get topics/orders-0/00000000000000000000.log 0-100: 100 bytes, 3.1 ms",
        "broker 1: Fetch __remote_log_metadata-3 from 17: 512 bytes, 2.0 ms",
        "postgresql://role@host:5432/inkless: connect: 12.0 ms",
    ):
        assert redacted(text) == text


def test_other_secrets_are_known_by_their_look() -> None:
    for text in (
        'sasl.jaas.config=org.apache.kafka.PlainLoginModule required username="u" password="hunter22";',
        "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/2026, Signature=hunter22",
        "{'Authorization': 'Bearer hunter22'}",
        "SaslAuthenticateRequest(auth_bytes=b'\\x00user\\x00hunter22')",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter22\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nhunter22",
    ):
        assert "hunter22" not in redacted(text), text


def test_a_setting_in_a_command_line_is_hidden_to_the_end_of_its_word() -> None:
    for value in ("ab,hunter22", "ab&hunter22", "ab;hunter22", "'ab'hunter22", 'a"b hunter22', "a\nhunter22"):
        for form in ("--store-option={}", "{}"):
            assert redacted_words([form.format(f"secret_key={value}")]) == [form.format(f"secret_key={HIDDEN}")], value


def test_the_word_after_an_option_for_a_secret_is_hidden() -> None:
    line = "x --client-secret {} --store s3://b --store-option secret-key={} --token -v"

    assert redacted_words(line.format("hunter22", "hunter22").split()) == line.format(HIDDEN, HIDDEN).split()
