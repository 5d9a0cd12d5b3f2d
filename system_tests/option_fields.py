"""An option of a command is declared once: as the metadata of a dataclass field.

`system_tests.cli` makes the options of its commands from such fields, and an instance from what was
given. A field without this metadata is no option of the command line.
"""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, Final, get_type_hints

MAX_MEMBERS: Final = 26
"""Processes of a live group: members are called a to z."""
MAX_SIMULATED: Final = 1000
"""Processes of a simulated group."""
MAX_PARTITIONS: Final = 1000
MAX_SESSION_MS: Final = 300_000
"""Session timeout of a live group."""
_KEY = "option"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionText:
    """How the command line takes a field; its type and default are the field's.

    Attributes:
        help: the help text.
        flag: `--` and the field's name if empty.
        metavar: what stands for the value in the help, or None.
        choices: the accepted words, or empty.
        least: the smallest number, or None.
        most: the largest number, or None.
        none: the word that means None, shown as the default; or None.
    """

    help: str
    flag: str = ""
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    none: str | None = None


def option(help_text: str, **text: Any) -> Mapping[str, OptionText]:
    """Return the metadata of a field that is an option; `text` as the fields of `OptionText`."""
    return {_KEY: OptionText(help=help_text, **text)}


def option_text(metadata: Mapping[str, Any]) -> OptionText | None:
    """Return how the command line takes a field, or None if it does not."""
    return metadata.get(_KEY)


def hinted_fields(kind: type) -> Iterator[tuple[Field[Any], Any]]:
    """Return each field of a dataclass with its type, in order."""
    hints = get_type_hints(kind)
    for field in fields(kind):
        yield field, hints[field.name]


# Options that several commands have.
MEMBERS: Final = option("Processes.", least=1, most=MAX_MEMBERS)
PARTITIONS: Final = option("Partitions of the source topic.", least=1, most=MAX_PARTITIONS)
STATIC: Final = option("Members carry a group.instance.id (KIP-345).")
OFFLINE: Final = option("Stop all members, then start all, without upgrade.from.")
WAITS_FOR_SESSIONS: Final = option(
    "Start a static member after its session has expired, if an earlier program may not read its"
    " former answer, as plan demands.",
    flag="--wait-for-sessions",
)
SEED: Final = option("Seed of the random generator.", metavar="N")
RATE: Final = option("Records written per second.", least=1, most=20_000)
SETTLE_TIMEOUT: Final = option(
    "How long the group may take to settle after each step.",
    flag="--timeout",
    metavar="SECONDS",
    least=1,
    most=3600,
)


def session_timeout_text(*, least: int) -> Mapping[str, OptionText]:
    """Return the metadata of ``--session-timeout-ms``."""
    return option("How long a silent member stays in the group.", least=least, most=MAX_SESSION_MS)


def broker_text(metavar: str, *, none: str | None = None) -> Mapping[str, OptionText]:
    """Return the metadata of ``--broker``; `none` is the word for the embedded broker."""
    return option(
        "Broker to start; kafka:3.9 or kafka:4 (the newest) is a real one (extra `real`).",
        metavar=metavar,
        none=none,
    )
