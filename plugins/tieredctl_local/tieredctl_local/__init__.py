"""The layout `local`: objects as Kafka's LocalTieredStorage names and stores them."""

from tieredctl_local.layout import LocalLayout, local_layout

__all__ = ["LocalLayout", "local_layout"]
