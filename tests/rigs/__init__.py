"""Real parts to test against: Kafka brokers, Kafka's own classes, and data that Kafka's own code wrote.

Nothing in here is imported by `tieredctl` itself, and nothing in here imports `tieredctl`: a rig that shared code with
what it judges would agree with its mistakes.
"""
