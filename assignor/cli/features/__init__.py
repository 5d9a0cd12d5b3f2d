"""The command `assignor features`."""
