"""Settings of a client's rebootstrap (KIP-899, KIP-1102)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

JITTER: Final = 0.2
"""Back-offs and set-up timeouts vary by 20 % up or down, as in Kafka's clients (KIP-144)."""

MULTIPLIER: Final = 2
"""Factor of a back-off or set-up timeout per failure."""


class RebootstrapConfigError(ValueError):
    """A setting is unknown or has an invalid value."""


class RecoveryStrategy(StrEnum):
    """``metadata.recovery.strategy``: what to do when no known broker is usable."""

    REBOOTSTRAP = "rebootstrap"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootstrapConfig:
    """When to rebootstrap, and time limits of one connection; times in milliseconds.

    Attributes:
        strategy: ``metadata.recovery.strategy``; the default is ``rebootstrap`` since KIP-1102.
        trigger_ms: ``metadata.recovery.rebootstrap.trigger.ms``, counted from the first attempt to
            get metadata.
        reconnect_backoff_ms: ``reconnect.backoff.ms``, after the first failure of a connection.
        reconnect_backoff_max_ms: ``reconnect.backoff.max.ms``.
        connection_setup_timeout_ms: ``socket.connection.setup.timeout.ms`` of the first attempt.
        connection_setup_timeout_max_ms: ``socket.connection.setup.timeout.max.ms``.

    Raises:
        RebootstrapConfigError: the strategy is unknown, or a time is negative or not an integer.
    """

    strategy: RecoveryStrategy = RecoveryStrategy.REBOOTSTRAP
    trigger_ms: int = 300_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    connection_setup_timeout_ms: int = 10_000
    connection_setup_timeout_max_ms: int = 30_000

    def __post_init__(self) -> None:
        """Check all values."""
        if self.strategy not in tuple(RecoveryStrategy):
            raise RebootstrapConfigError(
                f"metadata.recovery.strategy is {str(self.strategy)!r}; set one of "
                + ", ".join(RecoveryStrategy)
            )
        for key, field in FIELD_OF_KEY.items():
            value = getattr(self, field)
            if field == "strategy":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise RebootstrapConfigError(
                    f"{key} is {value!r}; set a whole number of milliseconds, 0 or more"
                )

    def reconnect_delay_ms(self, failures: int, jitter: float) -> int:
        """Return the back-off after the ``failures``-th failure in a row (from 1).

        Args:
            failures: failures of the connection since it last worked.
            jitter: random number from 0.0 to 1.0, given by the caller.
        """
        return _exponential(
            self.reconnect_backoff_ms, self.reconnect_backoff_max_ms, failures - 1, jitter
        )

    def setup_timeout_ms(self, failures: int, jitter: float) -> int:
        """Return the time limit for connecting after ``failures`` failures."""
        return _exponential(
            self.connection_setup_timeout_ms, self.connection_setup_timeout_max_ms, failures, jitter
        )


FIELD_OF_KEY: Final[Mapping[str, str]] = {
    "metadata.recovery.strategy": "strategy",
    "metadata.recovery.rebootstrap.trigger.ms": "trigger_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "socket.connection.setup.timeout.ms": "connection_setup_timeout_ms",
    "socket.connection.setup.timeout.max.ms": "connection_setup_timeout_max_ms",
}
"""Kafka's name of each setting -> field of ``RebootstrapConfig``."""


def rebootstrap_config(settings: Mapping[str, object]) -> RebootstrapConfig:
    """Return the settings under Kafka's names as a :class:`RebootstrapConfig`.

    Numbers may be given as text, as in a properties file.

    Raises:
        RebootstrapConfigError: a name is unknown (the message names the nearest) or a value is
            invalid.
    """
    fields: dict[str, object] = {}
    for key in sorted(settings):
        if key not in FIELD_OF_KEY:
            near = get_close_matches(key, FIELD_OF_KEY, n=1, cutoff=0.0)
            raise RebootstrapConfigError(f"setting {key!r} is unknown; did you mean {near[0]!r}?")
        fields[FIELD_OF_KEY[key]] = _parsed(key, settings[key])
    return RebootstrapConfig(**fields)  # type: ignore[arg-type]  # __post_init__ looks at each


def _parsed(key: str, value: object) -> object:
    if key == "metadata.recovery.strategy":
        text = str(value).lower()
        return RecoveryStrategy(text) if text in tuple(RecoveryStrategy) else value
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return value


def _exponential(initial: int, most: int, attempts: int, jitter: float) -> int:
    """Return ``initial`` doubled per attempt up to ``most``, varied by 20 % with ``jitter``."""
    if most <= initial:
        return most if initial and most else initial
    steps = math.log(most / max(initial, 1), MULTIPLIER)
    term = initial * MULTIPLIER ** min(max(attempts, 0), steps)
    return min(most, int(term * (1 - JITTER + 2 * JITTER * jitter)))
