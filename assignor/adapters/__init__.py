"""Adapters to Kafka client libraries, and what they share; nothing else here imports a client."""
