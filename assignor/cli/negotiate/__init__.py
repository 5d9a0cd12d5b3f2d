"""The command `assignor negotiate`."""
