"""How a secret may be spelled where it is not to be seen."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from urllib.parse import quote, quote_plus


def plain(secret: str) -> str:
    return secret


def in_json(secret: str) -> str:
    return json.dumps(secret)[1:-1]


def in_a_path(secret: str) -> str:
    return quote(secret, safe="")


def in_a_url(secret: str) -> str:
    return quote(secret)


def in_a_form(secret: str) -> str:
    return quote_plus(secret)


def in_base64(secret: str) -> str:
    return b64encode(secret.encode()).decode()


def in_base64_of_urls(secret: str) -> str:
    return urlsafe_b64encode(secret.encode()).decode()


def after_a_user(secret: str) -> str:
    """As HTTP's basic authentication has it."""
    return b64encode(f"user:{secret}".encode()).decode()


def after_another_user(secret: str) -> str:
    return b64encode(f"admin:{secret}".encode()).decode()


def in_sasl_plain(secret: str) -> str:
    return b64encode(f"\0rig-user\0{secret}".encode()).decode()


SPELLINGS: Sequence[Callable[[str], str]] = (
    plain,
    in_json,
    in_a_path,
    in_a_url,
    in_a_form,
    in_base64,
    in_base64_of_urls,
    after_a_user,
    after_another_user,
    in_sasl_plain,
)
