"""Credentials that clouds lend: a role of AWS's, and an access token of Google's."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from pathlib import Path

import pytest
from moto import mock_aws

from tests.rigs.token_issuer import TokenIssuer
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.connection_settings import librdkafka_settings
from tieredctl.kafka.sign_in.msk_iam import MskSignIn

HOST = "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com"
ACCOUNT = "tools@project.iam.gserviceaccount.com"
GOOGLES = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.login.callback.handler.class": "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler",
}


def google_account(folder: Path, issuer: TokenIssuer, key: str) -> str:
    file = folder / "account.json"
    account = {"type": "service_account", "client_email": ACCOUNT, "private_key": key, "project_id": "project"}
    file.write_text(json.dumps(account | {"token_uri": f"{issuer.url}/token", "private_key_id": "1"}))
    return str(file)


@mock_aws
def test_a_role_is_assumed_by_the_name_of_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("AWS_ACCESS_KEY_ID", "AKOWN"), ("AWS_SECRET_ACCESS_KEY", "x"), ("AWS_REGION", "eu-west-1")):
        monkeypatch.setenv(name, value)
    options = {"awsRoleArn": "arn:aws:iam::123456789012:role/kafka", "awsStsRegion": "eu-west-1"}

    sent = json.loads(MskSignIn(options).exchange(HOST).auth_bytes())

    assert sent["x-amz-credential"].startswith("ASIA")
    assert sent["x-amz-security-token"]


def test_google_is_shown_its_own_access_token_with_the_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with TokenIssuer() as issuer:
        file = google_account(tmp_path, issuer, issuer.private_key_pem())
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", file)

        settings = librdkafka_settings("broker:9092", GOOGLES)
        assert settings is not None
        token, ends_at, *_ = settings["oauth_cb"]("")

    header, payload, access = (urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split("."))
    claims = json.loads(payload)
    assert json.loads(header) == {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    assert (claims["sub"], claims["scope"], claims["exp"]) == (ACCOUNT, "kafka", ends_at)
    assert access.decode().startswith("ey")


def test_an_account_that_google_refuses_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with TokenIssuer() as issuer, TokenIssuer() as other:
        file = google_account(tmp_path, issuer, other.private_key_pem())
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
        settings = librdkafka_settings("broker:9092", {**GOOGLES, "client.id": "refused"})
        assert settings is not None

        with pytest.raises(TieredctlError) as refused:
            settings["oauth_cb"]("")

    assert refused.value.code is ErrorCode.BROKER_REFUSED
    assert "\n" not in refused.value.message
