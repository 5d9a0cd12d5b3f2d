"""The command `assignor inspect`."""
