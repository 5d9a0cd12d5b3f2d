"""What fails around an experiment, not in it: no broker, no Java, a port in use, no disk."""


class SurroundingsError(Exception):
    """Something around the experiment failed; the message says what, and what to do."""
