"""The command `assignor assign`."""
