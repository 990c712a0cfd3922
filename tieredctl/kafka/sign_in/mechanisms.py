"""Which way to sign in properties ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock

from tieredctl.kafka.properties import Properties, unusable
from tieredctl.kafka.sign_in.google import googles_sign_in
from tieredctl.kafka.sign_in.kerberos import KerberosSignIn
from tieredctl.kafka.sign_in.login_module import LoginModule, login_module
from tieredctl.kafka.sign_in.msk_iam import MskSignIn, msk_bearer_sign_in
from tieredctl.kafka.sign_in.oauth import kafkas_sign_in, strimzis_sign_in
from tieredctl.kafka.sign_in.passwords import PASSWORD_MECHANISMS, PasswordSignIn
from tieredctl.kafka.sign_in.sign_in import SignIn

MECHANISMS = ("GSSAPI", *PASSWORD_MECHANISMS, "OAUTHBEARER", "AWS_MSK_IAM")

_LOGIN_HANDLER, _CLIENT_HANDLER = "sasl.login.callback.handler.class", "sasl.client.callback.handler.class"
_KAFKAS = "org.apache.kafka.common.security.oauthbearer."
_BEARER_HANDLERS: Mapping[str, Callable[[Properties, Mapping[str, str]], SignIn]] = {
    f"{_KAFKAS}OAuthBearerLoginCallbackHandler": kafkas_sign_in,
    f"{_KAFKAS}secured.OAuthBearerLoginCallbackHandler": kafkas_sign_in,
    "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler": strimzis_sign_in,
    "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler": lambda _properties, _options: googles_sign_in(),
    "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler": lambda _, options: msk_bearer_sign_in(options),
}
_MSK_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
_MODULES: Mapping[str, tuple[str, ...]] = {
    "GSSAPI": ("com.sun.security.auth.module.Krb5LoginModule",),
    "OAUTHBEARER": (f"{_KAFKAS}OAuthBearerLoginModule",),
    "AWS_MSK_IAM": ("software.amazon.msk.auth.iam.IAMLoginModule",),
}

_made: dict[tuple[tuple[str, str], ...], SignIn] = {}
_lock = Lock()


def mechanism_of(properties: Properties) -> str:
    """The configured SASL mechanism."""
    return properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "GSSAPI")).strip().upper()


def sign_in_of(properties: Properties) -> SignIn:
    """The way to sign in, one for all clients of the same properties. Raises TieredctlError `usage` for what tieredctl
    does not have, by name."""
    key = tuple(sorted(properties.items()))
    with _lock:
        if key not in _made:
            _made[key] = _sign_in(properties)
        return _made[key]


def _sign_in(properties: Properties) -> SignIn:
    mechanism = mechanism_of(properties)
    if mechanism in PASSWORD_MECHANISMS:
        return PasswordSignIn(mechanism, properties)
    if mechanism not in _MODULES:
        raise unusable(f"sasl.mechanism is {mechanism}, which is not one of {', '.join(MECHANISMS)}")
    login = login_module(properties)
    if login is not None and login.class_name not in _MODULES[mechanism]:
        raise unusable(f"sasl.jaas.config names {login.class_name}, not {_MODULES[mechanism][0]} for {mechanism}")
    options = {} if login is None else login.options
    if mechanism == "AWS_MSK_IAM":
        _demand_handler(properties, _CLIENT_HANDLER, _MSK_HANDLER)
        return MskSignIn(options)
    if mechanism == "GSSAPI":
        return _by_kerberos(properties, login)
    handler = properties.get(_LOGIN_HANDLER, f"{_KAFKAS}OAuthBearerLoginCallbackHandler")
    if handler not in _BEARER_HANDLERS:
        raise unusable(
            f"tieredctl does not know {_LOGIN_HANDLER}={handler}", f"It knows {', '.join(_BEARER_HANDLERS)}."
        )
    return _BEARER_HANDLERS[handler](properties, options)


def _by_kerberos(properties: Properties, login: LoginModule | None) -> SignIn:
    if login is None:
        raise unusable("GSSAPI needs sasl.jaas.config with Krb5LoginModule", "Is another sasl.mechanism meant?")
    return KerberosSignIn(properties, login.options)


def _demand_handler(properties: Properties, name: str, known: str) -> None:
    stated = properties.get(name, known)
    if stated != known:
        raise unusable(f"tieredctl does not know {name}={stated}", f"It knows {known}.")
