"""Scripted clients in virtual time, checked against the real ones, and what loops do with them."""
