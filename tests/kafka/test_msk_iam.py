"""What is shown to MSK is what AWS's Java client (aws-msk-iam-auth 2.3.2) showed, for the same credentials and time."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from datetime import datetime
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import botocore.auth
import pytest

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.connection_settings import kafka_python_settings, librdkafka_settings
from tieredctl.kafka.sign_in.mechanisms import sign_in_of
from tieredctl.kafka.sign_in.msk_iam import MskSignIn

HOST = "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com"
PAYLOAD = {
    "x-amz-date": "20261128T203421Z",
    "x-amz-signedheaders": "host",
    "x-amz-signature": "67efadd9a90b4ca0f200b5289ed89958c0b74e50fcaa19f1e2d92d84914656e5",
    "host": "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com",
    "action": "kafka-cluster:Connect",
    "x-amz-expires": "900",
    "x-amz-security-token": "tok/en+=",
    "version": "2020_10_22",
    "x-amz-algorithm": "AWS4-HMAC-SHA256",
    "x-amz-credential": "AKIDEXAMPLE/20261128/eu-west-1/kafka-cluster/aws4_request",
    "user-agent": "tieredctl",
}
"""What AWS4SignedPayloadGenerator made."""
TOKEN = {
    "Action": "kafka-cluster:Connect",
    "X-Amz-Security-Token": "tok/en+=",
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    "X-Amz-Date": "20261128T203424Z",
    "X-Amz-SignedHeaders": "host",
    "X-Amz-Expires": "900",
    "X-Amz-Credential": "AKIDEXAMPLE/20261128/eu-west-1/kafka-cluster/aws4_request",
    "X-Amz-Signature": "e0e46275eb2829d908bc190ebc7aa6f727450298715d6e38ffed18438f5b5298",
}
"""The signed query of IAMOAuthBearerLoginCallbackHandler's token, without its User-Agent, which is not signed."""
PROPERTIES = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
    "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
}


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret/key+x")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "tok/en+=")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def at(monkeypatch: pytest.MonkeyPatch, stated: str) -> None:
    then = datetime.strptime(stated, "%Y%m%dT%H%M%SZ")  # noqa: DTZ007 - botocore takes UTC without a zone
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda **_: then)


def test_the_payload_is_that_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, PAYLOAD["x-amz-date"])

    sent = MskSignIn({}).exchange(HOST).auth_bytes()

    assert json.loads(sent) == PAYLOAD


def test_librdkafka_shows_the_token_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, TOKEN["X-Amz-Date"])

    settings = librdkafka_settings(f"{HOST}:9098", PROPERTIES)

    assert settings is not None
    token = settings["oauth_cb"]("")[0]
    url = urlsplit(urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    shown = dict(parse_qsl(url.query))
    assert shown.pop("User-Agent") == "tieredctl"
    assert (settings["sasl.mechanism"], url.netloc, shown) == ("OAUTHBEARER", "kafka.eu-west-1.amazonaws.com", TOKEN)


def test_the_region_comes_from_the_environment_where_the_host_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TieredctlError) as unknown:
        MskSignIn({}).exchange("localhost")
    monkeypatch.setenv("AWS_REGION", "eu-west-3")

    sent = json.loads(MskSignIn({}).exchange("localhost").auth_bytes())

    assert unknown.value.code is ErrorCode.USAGE
    assert "/eu-west-3/" in sent["x-amz-credential"]


def test_a_profile_is_the_one_that_the_login_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[other]\naws_access_key_id = AKOTHER\naws_secret_access_key = x\n")

    sent = json.loads(MskSignIn({"awsProfileName": "other"}).exchange(HOST).auth_bytes())

    assert sent["x-amz-credential"].startswith("AKOTHER/")
    with pytest.raises(TieredctlError) as missing:
        MskSignIn({"awsProfileName": "absent"}).exchange(HOST)
    assert missing.value.code is ErrorCode.BROKER_REFUSED


def test_what_tieredctl_does_not_have_is_refused_by_name() -> None:
    for name, value in (
        ("sasl.jaas.config", 'software.amazon.msk.auth.iam.IAMLoginModule required awsShouldUseFips="true";'),
        ("sasl.client.callback.handler.class", "com.example.Handler"),
        ("sasl.jaas.config", "com.example.Login required;"),
    ):
        with pytest.raises(TieredctlError) as refused:
            kafka_python_settings(f"{HOST}:9098", PROPERTIES | {name: value})
        assert refused.value.code is ErrorCode.USAGE
    assert sign_in_of(PROPERTIES).mechanism == "AWS_MSK_IAM"
