"""One connection to a Kafka server, from the host name to the first answer to an accepted client.

It asks one request at a time, and reports in one sentence why a server cannot be asked. The clients retry without end
and report less: kafka-python loses what a server answers before it closes a connection, and can only begin with a
broker's list of brokers; librdkafka has one sentence for all certificate errors. A failure found here ends a command
after a single failed login, so that no account is locked by repetition.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.client_properties import without_secrets
from tieredctl.kafka.connection_settings import security_protocol_of, server_addresses
from tieredctl.kafka.properties import Properties
from tieredctl.kafka.sign_in.mechanisms import sign_in_of
from tieredctl.kafka.sign_in.sign_in import SignIn
from tieredctl.kafka.tls_context import ssl_context
from tieredctl.kafka.tracing import traced_answer, traced_request
from tieredctl.ports.connection_steps import Step

if TYPE_CHECKING:
    from kafka.protocol.parser import KafkaProtocol


_RECEIVED_AT_ONCE = 1 << 16
_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
"""How an alert and a handshake begin."""
_TOLD_APART_BY = 2
_CERTIFICATE_ALERTS = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")
_HOST_MISMATCHES = (62, 64)
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""
_OUT_OF_TIME = (9, 10)
"""X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED."""
_UNSUPPORTED_MECHANISM, _ILLEGAL_SASL_STATE = 33, 34
_CLIENT_CERTIFICATES = ("ssl.certificate.location", "ssl.certificate.pem")


class Unreachable(Exception):
    """A server that could not be connected to; another one, or the same a little later, may work."""


class ServerConnection:
    """A connection to one server that accepted the client. To be closed."""

    def __init__(
        self, host: str, port: int, properties: Properties, seconds: float, passed: Passed | None = None
    ) -> None:
        """Connects and logs in. `properties` are librdkafka's. `passed` is called after each step, with this
        connection; what it raises ends the connection.

        Raises Unreachable; TieredctlError: `broker-refused` with the cause and the fix, `usage` for properties that
        Python does not support.
        """
        self._passed = passed or _unheard
        self.server = server_name(host, port)
        self._host, self._port = host, port
        self._properties = properties
        self._protocol = security_protocol_of(properties)
        self._is_accepted = False
        self._allow(seconds)
        with traced_request(self.server, f"connect by {self._protocol}"):
            self._begin()

    def _begin(self) -> None:
        from kafka.protocol.parser import KafkaProtocol

        self._socket = self._connected()
        try:
            self._passed(Step.TCP, self)
            self._socket = self._encrypted(self._socket)
            self._talk = _Talk(self._socket, KafkaProtocol(client_id="tieredctl"), self._remaining)
            with self._reporting_silence():
                self.versions = self._introduce(self._talk)
                self._passed(Step.VERSIONS, self)
                if self.has_login:
                    self._log_in(self._talk)
        except BaseException:
            self._socket.close()
            raise

    @property
    def has_login(self) -> bool:
        """Whether the client logged in, and so was accepted. Without a login, that is only known once the server has
        answered another request."""
        return self._protocol.startswith("SASL_")

    @property
    def connected(self) -> socket.socket:
        """What it is made of; an `ssl.SSLSocket` once TLS was agreed on."""
        return self._socket

    def answer_to(self, request: Any, seconds: float | None = None) -> Any:
        """The answer to a request of kafka-python's, whose version is set, within `seconds`, or what is left of those
        for the connection. Raises Unreachable where there is none, and TieredctlError `broker-refused` where a first
        request shows that the server refuses this client."""
        if seconds is not None:
            self._allow(seconds)
        with self._reporting_silence():
            try:
                answer = traced_answer(self.server, request, lambda: self._talk.answer_to(request))
            except _Closed:
                if self.has_login or self._is_accepted:
                    raise Unreachable("closed the connection") from None
                to = "SASL_SSL" if self._protocol == "SSL" else "SASL_PLAINTEXT or SASL_SSL"
                hint = f"Set security.protocol to {to}, sasl.mechanism and sasl.jaas.config in --command-config."
                self._refuse(f"{self.server} needs a login (SASL), but the client has none", hint)
        self._is_accepted = True
        return answer

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()

    def _allow(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    @contextmanager
    def _reporting_silence(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise Unreachable(self._silence()) from None
        except ssl.SSLError as error:
            self._refuse_alert(error)

    def _connected(self) -> socket.socket:
        try:
            return socket.create_connection((self._host, self._port), timeout=self._remaining())
        except socket.gaierror:
            raise Unreachable("cannot be reached: unknown host name") from None
        except TimeoutError:
            raise Unreachable(self._silence()) from None
        except ConnectionRefusedError:
            raise Unreachable("cannot be reached: connection refused") from None
        except OSError as error:
            raise Unreachable(f"cannot be reached: {error.strerror or error}") from None

    def _encrypted(self, connection: socket.socket) -> socket.socket:
        if not self._protocol.endswith("SSL"):
            return connection
        context = ssl_context(self._properties)
        try:
            connection.settimeout(self._remaining())
            self._socket = context.wrap_socket(connection, server_hostname=self._host)
            self._passed(Step.TLS, self)
            return self._socket
        except ssl.SSLCertVerificationError as error:
            self._refuse_certificate(error)
        except TimeoutError:
            raise Unreachable(self._silence()) from None
        except (ssl.SSLEOFError, ConnectionError):
            self._refuse_no_tls()
        except ssl.SSLError as error:
            if error.reason in ("WRONG_VERSION_NUMBER", "UNEXPECTED_EOF_WHILE_READING", "HTTP_REQUEST"):
                self._refuse_no_tls()
            self._refuse_alert(error)

    def _introduce(self, talk: _Talk) -> Mapping[int, tuple[int, int]]:
        """The first and the last version of each request that the server knows, by its key: every listener answers
        that, even before a login."""
        from kafka.protocol.metadata import ApiVersionsRequest

        try:
            versions = talk.answer_to(ApiVersionsRequest(version=0)).api_keys
            return {one.api_key: (one.min_version, one.max_version) for one in versions}
        except _Closed as closed:
            if self._protocol.endswith("SSL") or not (closed.received[:2] in _TLS_RECORDS or not closed.received):
                message = f"{self.server} does not speak Kafka's protocol"
                self._refuse(message, "Check the port, and security.protocol in --command-config.")
            speaks = "speaks TLS" if closed.received else "closed the connection at once, as a TLS listener does"
            hint = "Set security.protocol in --command-config to SSL or SASL_SSL, or give the port of another listener."
            self._refuse(f"{self.server} {speaks}, but the client does not use TLS", hint)

    def _log_in(self, talk: _Talk) -> None:
        from kafka.protocol.sasl import SaslHandshakeRequest

        sign_in = sign_in_of(self._properties)
        mechanism = sign_in.mechanism
        try:
            shaken = talk.answer_to(SaslHandshakeRequest(version=1, mechanism=mechanism))
        except _Closed:
            self._refuse(f"{self.server} closed the connection before the login", "Check the broker's log.")
        if shaken.error_code == _ILLEGAL_SASL_STATE:
            hint = f"Set security.protocol in --command-config to {self._protocol.removeprefix('SASL_')}."
            self._refuse(f"{self.server} has no login (SASL) on this listener", hint)
        if shaken.error_code == _UNSUPPORTED_MECHANISM or mechanism not in shaken.mechanisms:
            offered = ", ".join(sorted(shaken.mechanisms))
            hint = "Set sasl.mechanism in --command-config to one of these."
            self._refuse(f"{self.server} refused the mechanism {mechanism}: it offers {offered}", hint)
        self._prove(talk, sign_in)

    def _prove(self, talk: _Talk, sign_in: SignIn) -> None:
        from kafka.net.sasl import get_sasl_mechanism
        from kafka.protocol.sasl import SaslAuthenticateRequest

        settings = sign_in.for_kafka_python()
        login = get_sasl_mechanism(sign_in.mechanism)(host=self._host, **settings)
        try:
            while not login.is_done():
                answer = talk.answer_to(SaslAuthenticateRequest(version=0, auth_bytes=login.auth_bytes()))
                if answer.error_code:
                    self._refuse_login(sign_in, answer.error_message or "authentication failed")
                login.receive(answer.auth_bytes)
        except _Closed:
            self._refuse_login(sign_in, "the broker closed the connection during the login")
        except ValueError as error:
            self._refuse_login(sign_in, str(error))

    def _refuse_login(self, sign_in: SignIn, reason: str) -> NoReturn:
        self._refuse(f"{self.server} refused {sign_in.shown}: {reason.rstrip('.')}", sign_in.hint)

    def _refuse_certificate(self, error: ssl.SSLCertVerificationError) -> NoReturn:
        reason = error.verify_message.rstrip(".")
        if error.verify_code in _HOST_MISMATCHES:
            hint = (
                "Give a host name that is in the certificate; an empty "
                "ssl.endpoint.identification.algorithm disables the check."
            )
            self._refuse(f"The certificate of {self.server} is for another host name: {reason}", hint)
        if error.verify_code in _OUT_OF_TIME:
            hint = "Renew the broker's certificate, or correct this machine's clock."
            self._refuse(f"The certificate of {self.server} is not valid now: {reason}", hint)
        hint = "Set ssl.truststore.location in --command-config to a store with the authority that signed it."
        self._refuse(f"The certificate of {self.server} is not trusted: {reason}", hint)

    def _refuse_no_tls(self) -> NoReturn:
        hint = "Set security.protocol in --command-config to PLAINTEXT or SASL_PLAINTEXT, or give the port for TLS."
        self._refuse(f"{self.server} does not speak TLS, but the client uses TLS", hint)

    def _refuse_alert(self, error: ssl.SSLError) -> NoReturn:
        reason = (error.reason or str(error)).replace("_", " ").lower()
        if not any(word in (error.reason or "") for word in _CERTIFICATE_ALERTS):
            hint = "Compare the TLS versions and ciphers of client and listener."
            self._refuse(f"TLS with {self.server} failed: {reason}", hint)
        if any(name in self._properties for name in _CLIENT_CERTIFICATES):
            hint = "Check ssl.keystore.location in --command-config: brokers must trust the authority that signed it."
            self._refuse(f"{self.server} refused the client's certificate: {reason}", hint)
        hint = "Give the client's certificate and key with ssl.keystore.location in --command-config."
        self._refuse(f"{self.server} needs a client certificate, but the client has none: {reason}", hint)

    def _refuse(self, message: str, hint: str) -> NoReturn:
        raise TieredctlError(ErrorCode.BROKER_REFUSED, f"{without_secrets(message, self._properties)}.", hint=hint)

    def _silence(self) -> str:
        return f"did not answer within the request timeout of {self._seconds:g} s"

    def _remaining(self) -> float:
        return max(0.001, self._deadline - time.monotonic())


Passed: TypeAlias = Callable[[Step, ServerConnection], None]


def _unheard(_step: Step, _connection: ServerConnection) -> None:
    pass


class _Closed(Exception):
    """The server closed the connection, or sent something that is not an answer, which begins with `received`."""

    def __init__(self, received: bytes) -> None:
        super().__init__()
        self.received = received


class _Talk:
    """Requests and answers, one after the other."""

    def __init__(self, connection: socket.socket, protocol: KafkaProtocol, remaining: Callable[[], float]) -> None:
        self._connection, self._protocol, self._remaining = connection, protocol, remaining

    def answer_to(self, request: Any) -> Any:
        """Raises _Closed; TimeoutError; ssl.SSLError for TLS's own errors."""
        from kafka.errors import KafkaError

        self._protocol.send_request(request)
        received = b""
        try:
            self._connection.settimeout(self._remaining())
            self._connection.sendall(self._protocol.send_bytes())
            while True:
                self._connection.settimeout(self._remaining())
                data = self._connection.recv(_RECEIVED_AT_ONCE)
                if len(received) < _TOLD_APART_BY:
                    received += data
                if not data or received[:2] in _TLS_RECORDS:
                    raise _Closed(received)
                answers = self._protocol.receive_bytes(data)
                if answers:
                    return answers[0][1]
        except (ConnectionError, KafkaError, LookupError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
            raise _Closed(received) from None


def server_name(host: str, port: int) -> str:
    """HOST:PORT, as it is written on a command line."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


_SECONDS_BETWEEN_TRIES = 0.2
_SECONDS_FOR_A_RESTART = 3.0
"""How long to retry a server that refuses connections: it may be starting."""


def demand_connection(
    bootstrap_server: str, properties: Properties, timeout_seconds: float, *, waits_for_restart: bool = True
) -> None:
    """Returns once one of the servers accepts the client. Contacts each once, except those that may be starting.

    `properties` are librdkafka's. Raises TieredctlError: `broker-refused` with the cause and the fix,
    `broker-unreachable`, `usage` for properties that Python does not support.
    """
    addresses = server_addresses(bootstrap_server)
    now = time.monotonic()
    deadline = now + timeout_seconds
    patient_until = now + min(timeout_seconds, _SECONDS_FOR_A_RESTART) * waits_for_restart
    while True:
        reasons: list[str] = []
        for host, port in addresses:
            seconds = max(0.1, (deadline - time.monotonic()) / (len(addresses) - len(reasons)))
            try:
                return _contact(host, port, properties, seconds)
            except Unreachable as error:
                reasons.append(f"{server_name(host, port)} {error}")
        if time.monotonic() + _SECONDS_BETWEEN_TRIES > patient_until:
            hint = "Check host, port and firewall, and that the broker is running."
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, f"{'; '.join(reasons)}.", hint=hint)
        time.sleep(_SECONDS_BETWEEN_TRIES)


def _contact(host: str, port: int, properties: Properties, seconds: float) -> None:
    from kafka.protocol.metadata import MetadataRequest

    with closing(ServerConnection(host, port, properties, seconds)) as connection:
        if not connection.has_login:
            request = MetadataRequest(version=4, topics=[], allow_auto_topic_creation=False)
            connection.answer_to(request)
