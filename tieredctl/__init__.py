"""tieredctl: the operator's toolkit for Apache Kafka tiered storage."""

__version__ = "0.2.0"
