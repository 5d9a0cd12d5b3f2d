"""A simulated client that loses its brokers (KIP-899, KIP-1102), with faults and checkers."""
