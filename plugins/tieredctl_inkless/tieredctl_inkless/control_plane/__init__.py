"""Inkless's control plane in PostgreSQL. The only package that uses a database's client library."""
