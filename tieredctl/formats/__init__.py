"""Bytes to values and back, pure: no files, no sockets, no clock.

Each format is described once, as a schema (`schema.py`); the scalar reader and writer (`wire.py`) and the column
reader (`columns.py`) both work from that description. Hostile input raises `DecodeError`, never anything else.
"""
