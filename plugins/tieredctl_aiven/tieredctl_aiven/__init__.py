"""The layout `aiven`: objects as Aiven's tiered-storage-for-apache-kafka names and stores them."""

from tieredctl_aiven.layout import AivenLayout, aiven_layout

__all__ = ["AivenLayout", "aiven_layout"]
