"""What is simulated. Times are milliseconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """A cluster, what it takes in, its rules, and how often something goes wrong."""

    seed: int = 0
    batches: int = 20_000
    """How many producers send in all."""
    brokers: int = 6
    racks: int = 3
    coordinators: int = 4
    producers_per_broker: int = 50
    """Each has one batch under way at most, so this many are in a file at most."""
    partitions_per_coordinator: int = 8
    uses_gateways: bool = True
    commit_interval_ms: int = 250
    """How often a broker uploads what it has."""
    commit_timeout_ms: int = 30_000
    """How long after its upload a broker tries to commit a file; never later."""
    retention_ms: int = 60_000
    grace_ms: int = 60_000
    """How long an object stays after its last live batch."""
    orphan_scan_ms: int = 120_000
    orphan_grace_ms: int = 300_000
    crash_rate: float = 0.005
    """The share of uploads after which the broker dies, before it has committed the file everywhere."""
    failover_ms: int = 60_000
    """How long a coordinator has a leader, on average."""
    slow_store_rate: float = 0.01
    """The share of requests to the store that take fifty times as long."""
    snapshot_records: int = 500
    """After so many records of its log a coordinator takes a snapshot."""
    clock_skew_ms: int = 20_000
    """How far each clock is off at most."""
