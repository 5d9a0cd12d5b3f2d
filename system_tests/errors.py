"""Environment failures: no broker, no Java, a port in use, no disk."""


class EnvironmentFailureError(Exception):
    """The environment of an experiment failed; the message says what, and what to do."""
