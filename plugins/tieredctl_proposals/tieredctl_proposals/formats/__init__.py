"""Byte formats that the proposals describe."""
