"""Which way to sign in properties ask for."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from tieredctl.kafka.properties import Properties, unusable
from tieredctl.kafka.sign_in.login_module import login_module
from tieredctl.kafka.sign_in.passwords import PASSWORD_MECHANISMS, PasswordSignIn
from tieredctl.kafka.sign_in.sign_in import SignIn

MECHANISMS = ("GSSAPI", *PASSWORD_MECHANISMS, "OAUTHBEARER", "AWS_MSK_IAM")

_LOGIN_HANDLER, _CLIENT_HANDLER = "sasl.login.callback.handler.class", "sasl.client.callback.handler.class"
_KAFKAS = "org.apache.kafka.common.security.oauthbearer."
_BEARER_HANDLERS = {
    f"{_KAFKAS}OAuthBearerLoginCallbackHandler": "kafka",
    f"{_KAFKAS}secured.OAuthBearerLoginCallbackHandler": "kafka",
    "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler": "strimzi",
    "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler": "google",
    "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler": "msk",
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
    """Each mechanism's module is loaded where it is asked for: most users have passwords or certificates."""
    mechanism = mechanism_of(properties)
    if mechanism in PASSWORD_MECHANISMS:
        return PasswordSignIn(mechanism, properties)
    if mechanism not in _MODULES:
        raise unusable(f"sasl.mechanism is {mechanism}, which is not one of {', '.join(MECHANISMS)}")
    login = login_module(properties)
    if login is not None and login.class_name not in _MODULES[mechanism]:
        raise unusable(f"sasl.jaas.config names {login.class_name}, not {_MODULES[mechanism][0]} for {mechanism}")
    options = {} if login is None else login.options
    if mechanism == "OAUTHBEARER":
        return _by_token(properties, options)
    if mechanism == "AWS_MSK_IAM":
        from tieredctl.kafka.sign_in.msk_iam import MskSignIn

        _demand_handler(properties, _CLIENT_HANDLER, _MSK_HANDLER)
        return MskSignIn(options)
    if login is None:
        raise unusable("GSSAPI needs sasl.jaas.config with Krb5LoginModule", "Is another sasl.mechanism meant?")
    from tieredctl.kafka.sign_in.kerberos import KerberosSignIn

    return KerberosSignIn(properties, options)


def _by_token(properties: Properties, options: Mapping[str, str]) -> SignIn:
    handler = properties.get(_LOGIN_HANDLER, f"{_KAFKAS}OAuthBearerLoginCallbackHandler")
    if (whose := _BEARER_HANDLERS.get(handler)) is None:
        raise unusable(
            f"tieredctl does not know {_LOGIN_HANDLER}={handler}", f"It knows {', '.join(_BEARER_HANDLERS)}."
        )
    if whose == "google":
        from tieredctl.kafka.sign_in.google import googles_sign_in

        return googles_sign_in()
    if whose == "msk":
        from tieredctl.kafka.sign_in.msk_iam import msk_bearer_sign_in

        return msk_bearer_sign_in(options)
    from tieredctl.kafka.sign_in.oauth import kafkas_sign_in, strimzis_sign_in

    return (strimzis_sign_in if whose == "strimzi" else kafkas_sign_in)(properties, options)


def _demand_handler(properties: Properties, name: str, known: str) -> None:
    stated = properties.get(name, known)
    if stated != known:
        raise unusable(f"tieredctl does not know {name}={stated}", f"It knows {known}.")
