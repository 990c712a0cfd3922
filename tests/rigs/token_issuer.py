"""An OpenID provider on the loopback: a token endpoint, and the keys with which brokers check its tokens (JWKS)."""

from __future__ import annotations

import json
import ssl
import time
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

ISSUER, AUDIENCE, CLIENT, SECRET = "https://issuer.invalid", "kafka", "operator", "s3cret-of/the+client"
_KEY_ID = "the-key"
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class TokenIssuer:
    """Serves inside a `with`, over http, or over https with a certificate."""

    def __init__(self, certificate: Path | None = None, key: rsa.RSAPrivateKey | None = None) -> None:
        """`certificate` is a PEM file with its key. Issuers of one `key` are one provider."""
        self.key = key or rsa.generate_private_key(65537, 2048)
        self.seconds = 3600
        """How long tokens last."""
        self.asked: list[dict[str, str]] = []
        """The forms of all questions."""
        self.issued = 0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, issuer.keys())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                self._answer(*issuer.answer(form, self.headers.get("Authorization", "")))

            def _answer(self, status: int, document: dict[str, Any]) -> None:
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        scheme = "http"
        if certificate is not None:
            scheme, context = "https", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{scheme}://localhost:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def private_key_pem(self) -> str:
        """The provider's own key, which also stands for a client's that it knows."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def token(self, seconds: int, **claims: object) -> str:
        """A signed token that ends in so many seconds."""
        now = int(time.time())
        header = {"alg": "RS256", "kid": _KEY_ID, "typ": "JWT"}
        payload = {"iss": ISSUER, "aud": AUDIENCE, "sub": CLIENT, "iat": now, "exp": now + seconds, **claims}
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (header, payload))
        return f"{signed}.{_base64(self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def keys(self) -> dict[str, Any]:
        """The answer to who checks tokens."""
        numbers = self.key.public_key().public_numbers()
        public = {"n": _number(numbers.n), "e": _number(numbers.e)}
        return {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID, **public}]}

    def answer(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Status and document for a question."""
        self.asked.append(form)
        if not self._is_known(form, authorization):
            return 401, {"error": "invalid_client", "error_description": f"not {SECRET}"}
        self.issued += 1
        return 200, {"access_token": self.token(self.seconds), "token_type": "Bearer", "expires_in": self.seconds}

    def _is_known(self, form: dict[str, str], authorization: str) -> bool:
        if form.get("grant_type") == _JWT_BEARER:
            return self._signed_here(form.get("assertion", ""))
        if "client_assertion" in form:
            return self._signed_here(form["client_assertion"])
        scheme, _, pair = authorization.partition(" ")
        return scheme == "Basic" and b64decode(pair).decode() == f"{CLIENT}:{SECRET}"

    def _signed_here(self, assertion: str) -> bool:
        """Whether it has not ended, and is signed with the provider's key."""
        signed, _, signature = assertion.rpartition(".")
        given = b64decode(signature.replace("-", "+").replace("_", "/") + "==")
        try:
            self.key.public_key().verify(given, signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        except Exception:  # noqa: BLE001 - whatever is wrong with it
            return False
        payload = json.loads(urlsafe_b64decode(signed.partition(".")[2] + "=="))
        return float(payload["exp"]) > time.time()


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _number(number: int) -> str:
    return _base64(number.to_bytes((number.bit_length() + 7) // 8))
