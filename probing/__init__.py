"""Which version we speak next: decision tables of member and leader, sans-IO (KIP-268)."""
