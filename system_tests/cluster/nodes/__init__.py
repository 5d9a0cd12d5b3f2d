"""Nodes of the simulated cluster: controllers, brokers, clients, and the log between them."""
