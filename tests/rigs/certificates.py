"""Certificates made for the occasion."""

from __future__ import annotations

from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import NameOID


def self_signed(host: str, until: datetime, folder: Path, *addresses: str) -> Path:
    """A PEM file with a certificate of a host and its IP addresses, which is its own authority, valid for 30 days, and
    its key."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    names = [x509.DNSName(host), *(x509.IPAddress(ip_address(address)) for address in addresses)]
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(until - timedelta(days=30))
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / f"{host}.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem.write_bytes(private + made.public_bytes(Encoding.PEM))
    return pem


def put_in_stores(pem: Path, password: str, key_store: Path, authority: Path) -> None:
    """Writes what such a file has as a key store in PKCS12, and its certificate alone in PEM."""
    data = pem.read_bytes()
    key, certificate = load_pem_private_key(data, None), x509.load_pem_x509_certificate(data)
    assert isinstance(key, rsa.RSAPrivateKey)
    encryption = BestAvailableEncryption(password.encode())
    key_store.write_bytes(pkcs12.serialize_key_and_certificates(b"broker", key, certificate, None, encryption))
    authority.write_bytes(certificate.public_bytes(Encoding.PEM))
