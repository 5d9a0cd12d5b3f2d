"""What the port of every client passes, and a client that was invented to show what one needs."""
