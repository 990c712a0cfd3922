"""GSSAPI (RFC 4752): Kerberos, by a keytab or a ticket cache, as JAAS's Krb5LoginModule takes them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.properties import Properties, unusable
from tieredctl.kafka.sign_in.gssapi import GssError, SecurityContext
from tieredctl.kafka.sign_in.sign_in import OwnExchange

_NO_LAYER = 1
"""The only security layer that Kafka has: none, after the login."""


class KerberosSignIn(OwnExchange):
    """Signs in by tickets: those of a cache, or those that the key in a keytab is given."""

    mechanism = "GSSAPI"
    shown = "the Kerberos ticket"
    hint = "Check the principal, and sasl.kerberos.service.name, in --command-config. Only one login was tried."

    def __init__(self, properties: Properties, options: Mapping[str, str]) -> None:
        """Raises TieredctlError `usage` for options without a keytab or a cache."""
        service = properties.get("sasl.kerberos.service.name", options.get("serviceName"))
        if not service:
            raise unusable("GSSAPI needs sasl.kerberos.service.name, the broker's user, such as kafka")
        self._service = service
        self._principal = options.get("principal")
        self._stores: list[dict[str, str]] = []
        if options.get("useTicketCache", "false").lower() == "true":
            tickets = options.get("ticketCache")
            self._stores.append({} if tickets is None else {"ccache": f"FILE:{tickets.removeprefix('FILE:')}"})
        if options.get("useKeyTab", "false").lower() == "true":
            self._stores.append(self._keytab(options))
        if not self._stores:
            raise unusable("Krb5LoginModule needs useKeyTab=true with keyTab, or useTicketCache=true")

    def identity(self) -> str | None:
        return self._principal

    def exchange(self, host: str) -> KerberosExchange:
        reason = ""
        for store in self._stores:
            try:
                context = SecurityContext(self._service, host, self._principal, store)
                return KerberosExchange(context)
            except GssError as error:
                reason = str(error)
        who = f" of {self._principal}" if self._principal else ""
        hint = "Check the keytab or the ticket cache, the principal, the realm's KDC and this machine's clock."
        raise TieredctlError(ErrorCode.BROKER_REFUSED, f"Kerberos refused the login{who}: {reason}.", hint=hint)

    def for_librdkafka(self, bootstrap_server: str) -> None:  # noqa: ARG002 - no server makes its wheel have Kerberos
        return None

    def _keytab(self, options: Mapping[str, str]) -> dict[str, str]:
        if not (file := options.get("keyTab", "").removeprefix("FILE:")):
            raise unusable("Krb5LoginModule needs keyTab, since useKeyTab=true")
        if not self._principal:
            raise unusable("Krb5LoginModule needs principal, since useKeyTab=true")
        if not os.access(file, os.R_OK):
            raise unusable(f"The keytab {file} cannot be read")
        # Tickets stay in this process's memory, and are shared by its connections.
        return {"client_keytab": f"FILE:{file}", "ccache": f"MEMORY:tieredctl-{os.getpid()}-{id(self)}"}


class KerberosExchange:
    """One exchange: tickets first, then the agreement that there is no security layer."""

    def __init__(self, context: SecurityContext) -> None:
        """Raises GssError where the KDC gives no ticket for the service."""
        self._context = context
        self._is_agreed = self._is_done = False
        try:
            self._next = context.step(b"")
        except BaseException:
            context.close()
            raise

    def auth_bytes(self) -> bytes:
        if self._is_agreed:
            self._is_done = True
        return self._next

    def receive(self, auth_bytes: bytes) -> None:
        try:
            self._receive(auth_bytes)
        except (GssError, ValueError) as error:
            self._context.close()
            raise ValueError(f"Kerberos: {error}") from None

    def is_done(self) -> bool:
        return self._is_done

    def is_authenticated(self) -> bool:
        return self._is_agreed

    def auth_details(self) -> str:
        return "signed in by GSSAPI"

    def _receive(self, auth_bytes: bytes) -> None:
        if self._is_done:
            self._context.close()
        elif not self._context.is_established:
            self._next = self._context.step(auth_bytes)
        else:
            offered = self._context.unwrapped(auth_bytes)
            if not offered or not offered[0] & _NO_LAYER:
                raise ValueError("the server demands a security layer, which Kafka does not have")
            self._next = self._context.wrapped(bytes((_NO_LAYER, 0, 0, 0)))
            self._is_agreed = True
