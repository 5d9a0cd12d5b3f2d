"""Adapters to Kafka client libraries, one package a client; no other package imports a client."""
