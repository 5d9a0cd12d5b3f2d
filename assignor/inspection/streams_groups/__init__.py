"""Inspection of streams groups (KIP-1071), whose tasks are assigned by the broker (sans-IO)."""
