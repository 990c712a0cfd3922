"""AWS MSK with IAM: a request to connect, signed with AWS's Signature Version 4, is the proof.

kafka-python is given the mechanism AWS_MSK_IAM, whose proof names the broker; librdkafka has none, so it shows the same
proof as an OAUTHBEARER token, which names the region's endpoint, and which MSK takes on the same listener. botocore
signs and finds credentials; AWS's signer for Python would add only its dependency on boto3.

Source: software.amazon.msk.auth.iam of aws-msk-iam-auth, whose results for the same credentials and time are the same.
"""

from __future__ import annotations

import json
import os
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.installation import missing_extra
from tieredctl.kafka.properties import unusable
from tieredctl.kafka.sign_in.bearer import BearerSignIn, librdkafka_settings
from tieredctl.kafka.sign_in.sign_in import OwnExchange
from tieredctl.kafka.sign_in.tokens import Token, TokenSource

_SERVICE, _ACTION, _VERSION = "kafka-cluster", "kafka-cluster:Connect", "2020_10_22"
_SECONDS = 900
_AGENT = "tieredctl"
_REGION = re.compile(r"(?:^|\.)([a-z]{2,4}(?:-[a-z]+)+-\d+)(?=\.)")
_HINT = "Check the AWS credentials in use, and what IAM grants them on this cluster (kafka-cluster:Connect)."
_OPTIONS = frozenset({
    "awsProfileName", "awsRoleArn", "awsRoleExternalId", "awsRoleAccessKeyId", "awsRoleSecretAccessKey",
    "awsRoleSessionName", "awsRoleSessionToken", "awsStsRegion", "awsDebugCreds", "awsMaxRetries",
    "awsMaxBackOffTimeMs",
})  # fmt: skip
"""The login module's options. The last three change nothing here; awsShouldUseFips is refused."""


class MskSignIn(OwnExchange):
    """AWS_MSK_IAM."""

    mechanism = "AWS_MSK_IAM"
    shown = "the AWS credentials"
    hint = f"{_HINT} Only one login was tried."

    def __init__(self, options: Mapping[str, str]) -> None:
        self._credentials = _Credentials(options)

    def exchange(self, host: str) -> MskExchange:
        return MskExchange(self._credentials.payload(host))

    def for_librdkafka(self, bootstrap_server: str) -> dict[str, Any]:
        host = bootstrap_server.partition(",")[0].strip().rpartition(":")[0]
        return librdkafka_settings(TokenSource(lambda: self._credentials.token(host)).token, {})


def msk_bearer_sign_in(options: Mapping[str, str]) -> BearerSignIn:
    """OAUTHBEARER by IAMOAuthBearerLoginCallbackHandler, in the configured region. Raises TieredctlError `usage`."""
    credentials = _Credentials(options)
    return BearerSignIn(TokenSource(credentials.token), {}, _HINT)


class MskExchange:
    """Shows one signed payload; a server that accepts answers with JSON."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._is_done = self._is_accepted = False

    def auth_bytes(self) -> bytes:
        return self._payload

    def receive(self, auth_bytes: bytes) -> None:
        self._is_done, self._is_accepted = True, bool(auth_bytes)

    def is_done(self) -> bool:
        return self._is_done

    def is_authenticated(self) -> bool:
        return self._is_accepted

    def auth_details(self) -> str:
        return "signed in by AWS_MSK_IAM"


class _Credentials:
    """AWS's default chain, a profile, or a role that is assumed."""

    def __init__(self, options: Mapping[str, str]) -> None:
        if unknown := sorted(name for name in options if name.startswith("aws") and name not in _OPTIONS):
            raise unusable(f"tieredctl does not support {unknown[0]} in sasl.jaas.config")
        self._options = options
        self._lock = Lock()
        self._found: Any = None

    def payload(self, host: str) -> bytes:
        """What AWS_MSK_IAM shows to a broker."""
        signed = urlsplit(self._signed_url(host, self._region(host)))
        document = {"version": _VERSION, "host": host, "user-agent": _AGENT}
        document |= {name.lower(): value for name, value in parse_qsl(signed.query)}
        return json.dumps(document).encode()

    def token(self, host: str = "") -> Token:
        """The token of OAUTHBEARER. Of `host`, the region is taken."""
        region = self._region(host)
        url = self._signed_url(f"kafka.{region}.amazonaws.com", region)
        return Token(
            urlsafe_b64encode(f"{url}&User-Agent={quote(_AGENT)}".encode()).decode().rstrip("="), time.time() + _SECONDS
        )

    def _signed_url(self, host: str, region: str) -> str:
        with _failing_as_tieredctl():
            from botocore.auth import SigV4QueryAuth
            from botocore.awsrequest import AWSRequest

            request = AWSRequest("GET", f"https://{host}/", params={"Action": _ACTION})
            SigV4QueryAuth(self._frozen(), _SERVICE, region, expires=_SECONDS).add_auth(request)
            return str(request.url)

    def _region(self, host: str) -> str:
        if stated := _REGION.search(host):
            return stated[1]
        with _failing_as_tieredctl():
            # botocore itself looks at AWS_DEFAULT_REGION alone.
            region = os.environ.get("AWS_REGION") or self._session().get_config_variable("region")
        if not region:
            hint = "Set AWS_REGION, or give a broker's own host name."
            raise unusable(f"The AWS region is not known: {host or 'the host name'} does not have one", hint)
        return str(region)

    def _frozen(self) -> Any:
        with self._lock:
            if self._found is None:
                self._found = self._role() if "awsRoleArn" in self._options else self._session().get_credentials()
            if self._found is None:
                hint = "Set AWS_PROFILE or AWS_ACCESS_KEY_ID, or awsProfileName in sasl.jaas.config."
                raise TieredctlError(ErrorCode.BROKER_REFUSED, "No AWS credentials were found.", hint=hint)
            return self._found.get_frozen_credentials()

    def _session(self) -> Any:
        from botocore.session import Session

        return Session(profile=self._options.get("awsProfileName"))

    def _role(self) -> Any:
        """Credentials that botocore takes again before they end."""
        from botocore.credentials import RefreshableCredentials

        keys = {"aws_access_key_id": "AccessKeyId", "aws_secret_access_key": "SecretAccessKey"}
        keys |= {"aws_session_token": "SessionToken"}
        own = {name: self._options.get(f"awsRole{option}") for name, option in keys.items()}
        region = self._options.get("awsStsRegion")
        session = self._session()
        sts = session.create_client(
            "sts", region_name=region or session.get_config_variable("region") or "us-east-1", **own
        )
        asked = {
            "RoleArn": self._options["awsRoleArn"],
            "RoleSessionName": self._options.get("awsRoleSessionName", "aws-msk-iam-auth"),
        }
        if external := self._options.get("awsRoleExternalId"):
            asked["ExternalId"] = external

        def assume() -> dict[str, str]:
            given = sts.assume_role(**asked)["Credentials"]
            return {
                "access_key": given["AccessKeyId"],
                "secret_key": given["SecretAccessKey"],
                "token": given["SessionToken"],
                "expiry_time": given["Expiration"].isoformat(),
            }

        return RefreshableCredentials.create_from_metadata(assume(), assume, "sts-assume-role")


@contextmanager
def _failing_as_tieredctl() -> Iterator[None]:
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise missing_extra("Signing in at MSK with IAM needs botocore, which is not installed.", "s3") from None
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        message = f"AWS gave no credentials: {str(error).rstrip('.')}."
        raise TieredctlError(ErrorCode.BROKER_REFUSED, message, hint=_HINT) from None
