"""One server, tried step by step with a single login: what each step showed, and which one failed."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.authorized_operations import allowed_operations
from tieredctl.kafka.connection_settings import security_protocol_of
from tieredctl.kafka.needed_versions import missing_for_all, missing_for_some, release_in_words
from tieredctl.kafka.presented_certificates import Presented, chain_of, clients_own, ends_soon, presented_by
from tieredctl.kafka.properties import Properties
from tieredctl.kafka.server_connection import ServerConnection, Unreachable, server_name
from tieredctl.kafka.sign_in.mechanisms import sign_in_of
from tieredctl.ports.connection_steps import AllowedOperations, ConnectionStep, Step, StepOutcome

_STEPS = (Step.NAME, Step.TCP, Step.TLS, Step.VERSIONS, Step.SIGN_IN)
_UNREACHABLE_HINT = "Check host, port and firewall, and that the broker is running."
_NAME_HINT = "Check host and domain for a typo, and this machine's DNS."
_RENEW_HINT = "Renew it before it ends."
_VERSIONS_HINT = "Upgrade the brokers, or use the release of tieredctl that is of their age."
_FIRST_VERSIONS_WITH_FEATURES = 3
_RELEASE_FEATURE = "metadata.version"


class _Enough(Exception):
    """No further step is to be tried."""


class ConnectionAttempt:
    """What became of one server."""

    def __init__(self, host: str, port: int, properties: Properties) -> None:
        """Connects to nothing. `properties` are librdkafka's."""
        self.server = server_name(host, port)
        self.error: TieredctlError | None = None
        """Why the server did not accept the client."""
        self.failed_at: Step | None = None
        self.cluster: Any = None
        """The answer to a Metadata request, once the server accepted the client."""
        self.allowed: AllowedOperations | None = None
        self._host, self._port, self._properties = host, port, properties
        self._protocol = security_protocol_of(properties)
        self._steps: dict[Step, ConnectionStep] = {}
        self._why_no_login: str | None = None

    @property
    def is_refused(self) -> bool:
        """Whether the login was refused: without an answer, it was not."""
        is_answered = self.error is not None and self.error.code is not ErrorCode.BROKER_UNREACHABLE
        return is_answered and self.failed_at is Step.SIGN_IN

    def run(self, seconds: float, why_no_login: str | None = None) -> None:
        """Tries all steps within `seconds`; those before the login, where there is a reason not to try one."""
        self._why_no_login = why_no_login
        try:
            self._resolve()
            self._begun = time.monotonic()
            with closing(ServerConnection(self._host, self._port, self._properties, seconds, self._passed)) as made:
                self._use(made)
        except _Enough:
            pass
        except Unreachable as error:
            message = f"{self.server} {error}."
            self._fail(TieredctlError(ErrorCode.BROKER_UNREACHABLE, message, hint=_UNREACHABLE_HINT), seconds)
        except TieredctlError as error:
            self._fail(error, seconds)

    def steps(self) -> list[ConnectionStep]:
        """All steps in order, those too that were not tried."""
        return [self._steps.get(step) or self._not_tried(step) for step in _STEPS]

    def _resolve(self) -> None:
        try:
            resolved = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except (socket.gaierror, UnicodeError):
            message = f"{self.server} cannot be reached: unknown host name."
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message, hint=_NAME_HINT) from None
        addresses = [*dict.fromkeys(str(address[0]) for *_, address in resolved)]
        self._note(Step.NAME, ", ".join(addresses), {"addresses": addresses})

    def _passed(self, step: Step, connection: ServerConnection) -> None:
        if step is Step.TCP:
            address, port = connection.connected.getpeername()[:2]
            took = round((time.monotonic() - self._begun) * 1000)
            evidence = {"address": address, "port": port, "milliseconds": took}
            self._note(step, f"{address} accepts connections on port {port}, after {took} ms", evidence)
        elif step is Step.TLS:
            self._note_tls(connection.connected)
        elif step is Step.VERSIONS:
            self._note_versions(connection, None)
            if self._why_no_login is not None:
                raise _Enough

    def _use(self, connection: ServerConnection) -> None:
        from kafka.protocol.metadata import MetadataRequest

        cluster = connection.answer_to(MetadataRequest(version=4, topics=[], allow_auto_topic_creation=False))
        self._note_sign_in(connection)
        try:
            self._note_versions(connection, _metadata_version(connection))
            self.allowed = allowed_operations(connection)
        except (Unreachable, TieredctlError):  # It accepted the client before.
            self.allowed = AllowedOperations(None, None, None, {}, None)
        self.cluster = cluster

    def _note_tls(self, connection: socket.socket) -> None:
        assert isinstance(connection, ssl.SSLSocket)
        chain = chain_of(connection)
        cipher = (connection.cipher() or ("",))[0]
        evidence = {"version": connection.version(), "cipher": cipher, "chain": _documents(chain)}
        observation = f"{connection.version()}, {cipher}" + (f"; {chain[0]}" if chain else "")
        if ends_soon(chain):
            self._note(Step.TLS, observation, evidence, StepOutcome.ATTENTION, _RENEW_HINT)
        else:
            self._note(Step.TLS, observation, evidence)

    def _note_versions(self, connection: ServerConnection, metadata_version: int | None) -> None:
        ranges = connection.versions
        for_all, for_some = missing_for_all(ranges), missing_for_some(ranges)
        evidence = {"metadataVersion": metadata_version, "missing": for_all, "missingForSome": for_some}
        observation = release_in_words(ranges, metadata_version)
        if for_all:
            message = f"{observation}; tieredctl needs {'; '.join(for_all)}"
            self._note(Step.VERSIONS, message, evidence, StepOutcome.FAILED, _VERSIONS_HINT)
        else:
            without = f"; it lacks {'; '.join(for_some)}" if for_some else "; it knows all that tieredctl asks"
            self._note(Step.VERSIONS, observation + without, evidence)

    def _note_sign_in(self, connection: ServerConnection) -> None:
        if connection.has_login:
            sign_in = sign_in_of(self._properties)
            who = sign_in.identity()
            observation = sign_in.mechanism + ("" if who is None else f" as {who}")
            self._note(Step.SIGN_IN, observation, {"mechanism": sign_in.mechanism, "identity": who})
            return
        own = clients_own(self._properties) if self._protocol == "SSL" else None
        if own is None:
            observation = "no login, and the listener asks for none"
            self._note(Step.SIGN_IN, observation, {"mechanism": None, "identity": None})
            return
        evidence = {"mechanism": "SSL", "identity": own.subject, "certificate": own.document()}
        observation = f"the client's certificate, {own}"
        if ends_soon([own]):
            self._note(Step.SIGN_IN, observation, evidence, StepOutcome.ATTENTION, _RENEW_HINT)
        else:
            self._note(Step.SIGN_IN, observation, evidence)

    def _fail(self, error: TieredctlError, seconds: float) -> None:
        """Fails the step after the last one that was passed; but a server may refuse a client's certificate with its
        first answer."""
        is_alert = isinstance(error.__context__, ssl.SSLError)
        skipped = () if self._protocol.endswith("SSL") else (Step.TLS,)
        step = next(one for one in _STEPS if one not in self._steps and one not in skipped)
        self.error, self.failed_at = error, Step.TLS if is_alert else step
        observation, evidence = error.message.rstrip("."), dict[str, object](error=str(error.code))
        if isinstance(error.__context__, ssl.SSLCertVerificationError):
            chain = presented_by(self._host, self._port, seconds)
            evidence["chain"] = _documents(chain)
            observation += f"; it presents {chain[0]}" if chain else ""
        self._note(self.failed_at, observation, evidence, StepOutcome.FAILED, error.hint)

    def _not_tried(self, step: Step) -> ConnectionStep:
        if step is Step.TLS and not self._protocol.endswith("SSL"):
            observation = f"security.protocol is {self._protocol}: nothing is encrypted"
        elif self.failed_at is not None:
            observation = f"{self.failed_at} failed"
        else:
            observation = self._why_no_login or ""
        return ConnectionStep(self.server, step, StepOutcome.NOT_TRIED, observation)

    def _note(
        self,
        step: Step,
        observation: str,
        evidence: Mapping[str, object],
        outcome: StepOutcome = StepOutcome.OK,
        next_step: str | None = None,
    ) -> None:
        self._steps[step] = ConnectionStep(self.server, step, outcome, observation, next_step, evidence)


def _documents(chain: Sequence[Presented]) -> list[Mapping[str, object]]:
    return [one.document() for one in chain]


def _metadata_version(connection: ServerConnection) -> int | None:
    """The greatest metadata.version that the server supports; None where it does not tell."""
    from kafka.protocol.metadata import ApiVersionsRequest

    if connection.versions.get(ApiVersionsRequest.API_KEY, (0, 0))[1] < _FIRST_VERSIONS_WITH_FEATURES:
        return None
    asked = {"client_software_name": "tieredctl", "client_software_version": "1"}
    answered = connection.answer_to(ApiVersionsRequest(**asked, version=_FIRST_VERSIONS_WITH_FEATURES))
    levels = (one.max_version for one in answered.supported_features if one.name == _RELEASE_FEATURE)
    return next(levels, None)
