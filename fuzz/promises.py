"""The error of targets for a broken promise."""


class Finding(Exception):
    """A promise does not hold."""


def expect(holds: bool, promise: str) -> None:  # noqa: FBT001 reads as an assertion
    """Raise `Finding` with the promise unless it holds."""
    if not holds:
        raise Finding(promise)
