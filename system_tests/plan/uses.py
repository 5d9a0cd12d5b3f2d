"""Features of an application that change how it must be upgraded."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from probing import Release, find_release
from system_tests.sim import OptionError


class Use(StrEnum):
    """A feature of the application that changes how it must be upgraded."""

    FK_JOIN = "fk-join"
    KTABLE = "ktable"
    STATIC = "static"
    IQ = "iq"
    EOS = "eos"
    REGEX = "regex"


FEATURES: Final = {
    Use.FK_JOIN: "foreign-key joins",
    Use.KTABLE: "aggregations of KTables",
    Use.STATIC: "static members",
    Use.IQ: "interactive queries",
    Use.EOS: "exactly-once",
    Use.REGEX: "topics by regular expression",
}
"""Each feature in Kafka's words."""

SIGNS: Final = {
    Use.FK_JOIN: "foreign-key joins of KTables; subscriptions change in 3.3",
    Use.KTABLE: "aggregations of KTables; repartition topics change in 3.5",
    Use.STATIC: "members have group.instance.id",
    Use.IQ: "stores are queried, or application.server is set",
    Use.EOS: "processing.guarantee is not at_least_once",
    Use.REGEX: "topics are subscribed by a pattern; concerns --to streams only",
}
"""What shows in an application that it uses a feature."""


def read_uses(text: str) -> frozenset[Use]:
    """Return the features that a list names, separated by commas, in upper or lower case.

    Raises:
        ValueError: an unknown name; the message lists those that exist.
    """
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    unknown = sorted(set(words) - set(Use))
    if unknown:
        known = ", ".join(f"{use} ({FEATURES[use]})" for use in Use)
        raise ValueError(f"unknown value {unknown[0][:40]!r} for --uses; choose from {known}")
    return frozenset(map(Use, words))


# Use -> (first release with it, what it is there).
_SINCE: Final = {
    Use.FK_JOIN: ("2.4.0", "foreign-key joins, which exist since 2.4.0 (KIP-213)"),
    Use.STATIC: ("2.3.0", "static members: group.instance.id exists since 2.3.0 (KIP-345)"),
    Use.IQ: ("0.10.1.0", "interactive queries, which exist since 0.10.1.0 (KIP-67)"),
    Use.EOS: ("0.11.0.0", "exactly-once: processing.guarantee exists since 0.11.0.0 (KIP-129)"),
    Use.REGEX: ("0.10.1.0", "topics by pattern, which exist since 0.10.1.0 (KAFKA-3443)"),
}


def check_uses(releases: Iterable[Release], uses: Iterable[Use]) -> None:
    """Check that releases have the features of an application.

    Raises:
        OptionError: one of them does not have a feature.
    """
    for release in releases:
        for use in sorted(set(uses) & set(_SINCE)):
            since, what = _SINCE[use]
            if release.order < find_release(since).order:
                raise OptionError(
                    f"{release.name} has no {what}; leave {use} out of --uses, or take releases"
                    f" from {since} on"
                )
