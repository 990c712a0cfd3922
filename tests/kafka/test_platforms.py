"""Platforms are known by their servers' names, their cluster ids, their own topics and settings; Kafka by none."""

from __future__ import annotations

from typing import Any

from tieredctl.model.platforms import platform_by


def test_a_platform_is_known_by_any_sign_of_its_own() -> None:
    signs_of: dict[str, dict[str, Any]] = {
        "cloud": {"hosts": ["pkc-4nym6.us-east-1.aws.confluent.cloud"]},
        "tier topic": {"topics": ["orders", "_confluent-tier-state"]},
        "tier setting": {"settings": ["log.dirs", "confluent.tier.backend"]},
        "cluster id": {"cluster_id": "redpanda.806a0f4a-e691-4a2b-9352-ec4b769a5e6e"},
        "own setting": {"settings": ["elasticstream.enable"]},
        "agent": {"hosts": ["api-1.discovery.prod-z.us-east-1.warpstream.com"]},
        "provisioned": {"hosts": ["b-1.prod.abc123.c2.kafka.eu-central-1.amazonaws.com"]},
        "serverless": {"hosts": ["boot-abc.c3.kafka-serverless.us-east-1.amazonaws.com"]},
        "own instance": {"hosts": ["ec2-1-2-3-4.compute-1.amazonaws.com", "kafka.example.com"]},
        "Strimzi": {"hosts": ["prod-kafka-bootstrap.kafka.svc"], "topics": ["__strimzi_canary", "orders"]},
        "nothing": {"cluster_id": "preTTRqnQOeby9xOnCMfyA", "settings": ["log.dirs"]},
    }

    found = {name: platform_by(**signs) for name, signs in signs_of.items()}

    assert {name: platform and platform.name for name, platform in found.items()} == {
        "cloud": "Confluent's Kafka",
        "tier topic": "Confluent's Kafka",
        "tier setting": "Confluent's Kafka",
        "cluster id": "Redpanda",
        "own setting": "AutoMQ",
        "agent": "WarpStream",
        "provisioned": "Amazon MSK",
        "serverless": "Amazon MSK",
        "own instance": None,
        "Strimzi": None,
        "nothing": None,
    }
