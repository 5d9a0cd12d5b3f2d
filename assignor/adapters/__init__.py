"""Adapters to the Kafka client libraries; the only rooms of the assignor that import one."""
