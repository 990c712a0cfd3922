"""Where OAUTHBEARER's tokens come from: the login callback handler's class says, as in Java, and here by name alone."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from ssl import SSLContext
from urllib.parse import quote_plus, unquote, urlsplit

from tieredctl.kafka.properties import Properties, unusable
from tieredctl.kafka.sign_in.assertion import assertion, has_assertion, text_of
from tieredctl.kafka.sign_in.bearer import BearerSignIn
from tieredctl.kafka.sign_in.token_endpoint import TokenEndpoint
from tieredctl.kafka.sign_in.tokens import Token, TokenSource, demand_lasting, ends_at
from tieredctl.kafka.tls_context import ssl_context
from tieredctl.kafka.tls_stores import translate_identity, translate_trust

Options = Mapping[str, str]
_Fetch = Callable[[], Token]

_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_CLIENT_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_EXTENSION = "extension_"
_STRIMZIS_UNSUPPORTED = ("oauth.refresh.token", "oauth.password.grant.username")


def kafkas_sign_in(properties: Properties, options: Options) -> BearerSignIn:
    """Kafka's OAuthBearerLoginCallbackHandler: KIP-768's and KIP-1139's properties, and librdkafka's names of them.

    Raises TieredctlError `usage`; nothing is fetched yet.
    """
    retriever = properties.get(_RETRIEVER, "DefaultJwtRetriever").rpartition(".")[2]
    url = properties.get(_ENDPOINT, "")
    if not url:
        raise unusable(f"OAUTHBEARER needs {_ENDPOINT}")
    if retriever == "DefaultJwtRetriever":
        is_file = urlsplit(url).scheme == "file"
        retriever = "FileJwtRetriever" if is_file else "ClientCredentialsJwtRetriever"
    fetch: _Fetch
    if retriever == "FileJwtRetriever":
        fetch = partial(_token_in_file, unquote(urlsplit(url).path))
        hint = f"Check the token in the file that {_ENDPOINT} names: it may be of another issuer or audience."
    elif retriever == "ClientCredentialsJwtRetriever":
        fetch = _by_client_credentials(properties, options, url)
        hint = "Check the client and its scope in --command-config, and the audience that brokers expect."
    elif retriever == "JwtBearerJwtRetriever":
        fetch = _by_assertion(properties, options, url)
        hint = "Check the assertion and the scope in --command-config, and the audience that brokers expect."
    else:
        raise unusable(f"tieredctl does not know {_RETRIEVER}={properties[_RETRIEVER]}")
    source = TokenSource(fetch, shows_secret=retriever != "FileJwtRetriever")
    return BearerSignIn(source, _extensions(properties, options), hint)


def strimzis_sign_in(properties: Properties, options: Options) -> BearerSignIn:
    """Strimzi's JaasClientOauthLoginCallbackHandler: its `oauth.*` options, or environment variables of these names.

    Raises TieredctlError `usage`; nothing is fetched yet.
    """
    stated = {**_strimzis_environment(), **options}
    for name in _STRIMZIS_UNSUPPORTED:
        if name in stated:
            raise unusable(f"tieredctl does not support Strimzi's {name}", "Give oauth.client.id and its secret.")
    hint = "Check Strimzi's oauth.* options in --command-config, and the audience that brokers expect."
    if token := stated.get("oauth.access.token"):
        source = TokenSource(partial(_stated_token, token, "oauth.access.token"), shows_secret=False)
    elif location := stated.get("oauth.access.token.location"):
        source = TokenSource(partial(_token_in_file, location), shows_secret=False)
    else:
        source = TokenSource(_by_strimzis_client(properties, stated))
    return BearerSignIn(source, _extensions(properties, options), hint)


def https_context(properties: Properties, options: Options) -> SSLContext:
    """TLS to a token endpoint: the login's own ssl.* options, as Kafka takes them; without any, the system's
    authorities and those of the properties."""
    own = {name.removeprefix("oauth."): value for name, value in options.items()}
    own = {name: value for name, value in own.items() if name.startswith("ssl.")}
    if own:
        if own.get("ssl.endpoint.identification.algorithm") == "":
            own["ssl.endpoint.identification.algorithm"] = "none"
        translate_trust(own)
        translate_identity(own)
        return ssl_context(own)
    context = ssl_context({name: value for name, value in properties.items() if name.startswith("ssl.ca.")})
    context.load_default_certs()
    return context


def _by_client_credentials(properties: Properties, options: Options, url: str) -> _Fetch:
    prefix = "sasl.oauthbearer."
    client = properties.get(f"{prefix}client.credentials.client.id", options.get("clientId"))
    client = client or properties.get(f"{prefix}client.id")
    secret = properties.get(f"{prefix}client.credentials.client.secret", options.get("clientSecret"))
    secret = secret or properties.get(f"{prefix}client.secret")
    form = {"grant_type": "client_credentials", **_scope(properties, options)}
    endpoint = TokenEndpoint(url, https_context(properties, options))
    if has_assertion(properties):
        form |= {"client_assertion_type": _CLIENT_ASSERTION} | ({"client_id": client} if client else {})
        return lambda: endpoint.token(form | {"client_assertion": assertion(properties)}, {})
    if not client or secret is None:
        raise unusable("OAUTHBEARER needs clientId and clientSecret in sasl.jaas.config")
    is_quoted = properties.get(f"{prefix}header.urlencode", "false").lower() == "true"
    pair = (quote_plus(client), quote_plus(secret)) if is_quoted else (client, secret)
    return partial(endpoint.token, form, _basic(*pair))


def _by_assertion(properties: Properties, options: Options, url: str) -> _Fetch:
    if not has_assertion(properties):
        names = "sasl.oauthbearer.assertion.file or sasl.oauthbearer.assertion.private.key.file"
        raise unusable(f"JwtBearerJwtRetriever needs {names}")
    endpoint = TokenEndpoint(url, https_context(properties, options))
    form = {"grant_type": _JWT_BEARER, **_scope(properties, options)}
    return lambda: endpoint.token(form | {"assertion": assertion(properties)}, {})


def _by_strimzis_client(properties: Properties, stated: Options) -> _Fetch:
    url, client = stated.get("oauth.token.endpoint.uri"), stated.get("oauth.client.id")
    if not url or not client:
        raise unusable("Strimzi's handler needs oauth.token.endpoint.uri and oauth.client.id in sasl.jaas.config")
    endpoint = TokenEndpoint(url, https_context(properties, stated))
    form = {"grant_type": "client_credentials"}
    form |= {name: stated[f"oauth.{name}"] for name in ("scope", "audience") if f"oauth.{name}" in stated}
    if secret := stated.get("oauth.client.secret"):
        return partial(endpoint.token, form, _basic(client, secret))
    given, file = stated.get("oauth.client.assertion"), stated.get("oauth.client.assertion.location")
    if not given and not file:
        raise unusable("Strimzi's handler needs oauth.client.secret or oauth.client.assertion in sasl.jaas.config")
    form |= {"client_id": client, "client_assertion_type": stated.get("oauth.client.assertion.type", _CLIENT_ASSERTION)}

    def fetch() -> Token:
        return endpoint.token(form | {"client_assertion": given or text_of(file or "", "assertion")}, {})

    return fetch


def _strimzis_environment() -> dict[str, str]:
    return {name.lower().replace("_", "."): value for name, value in os.environ.items() if name.startswith("OAUTH_")}


def _scope(properties: Properties, options: Options) -> dict[str, str]:
    scope = properties.get("sasl.oauthbearer.scope", options.get("scope"))
    return {"scope": scope} if scope else {}


def _basic(client: str, secret: str) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(f'{client}:{secret}'.encode()).decode()}"}


def _token_in_file(file: str) -> Token:
    return _stated_token(text_of(file, "token"), file)


def _stated_token(value: str, where: str) -> Token:
    end = ends_at(value)
    if end is None:
        raise unusable(f"The token in {where} is not a JWT with the claim exp")
    return demand_lasting(Token(value, end), f"The token in {where}", "Put a new token there.")


def _extensions(properties: Properties, options: Options) -> dict[str, str]:
    """KIP-342's extensions, such as Confluent Cloud's logicalCluster."""
    pairs = (pair.partition("=") for pair in properties.get("sasl.oauthbearer.extensions", "").split(",") if pair)
    stated = {name.strip(): value.strip() for name, _, value in pairs}
    own = {name.removeprefix(_EXTENSION): value for name, value in options.items() if name.startswith(_EXTENSION)}
    return stated | own
