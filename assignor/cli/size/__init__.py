"""The command `assignor size`."""
