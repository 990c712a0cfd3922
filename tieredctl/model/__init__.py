"""Frozen values of the domain. No I/O, no bytes, nothing from outside the standard library."""
