"""Features of an application that change how it must be upgraded."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from probing import Release, find_release
from system_tests.engine import OptionError
from system_tests.plan.exactly_once import has_version


class Use(StrEnum):
    """A feature of the application that changes how it must be upgraded."""

    FK_JOIN = "fk-join"
    KTABLE = "ktable"
    SUPPRESS = "suppress"
    OUTER_JOIN = "outer-join"
    STATIC = "static"
    IQ = "iq"
    EOS = "eos"
    EOS_V1 = "eos-v1"
    EOS_V2 = "eos-v2"
    REGEX = "regex"


FEATURES: Final = {
    Use.FK_JOIN: "foreign-key joins",
    Use.KTABLE: "aggregations of KTables",
    Use.SUPPRESS: "suppressed results",
    Use.OUTER_JOIN: "left or outer joins of streams",
    Use.STATIC: "static members",
    Use.IQ: "interactive queries",
    Use.EOS: "exactly-once",
    Use.EOS_V1: "exactly-once, exactly_once",
    Use.EOS_V2: "exactly-once, exactly_once_v2 or exactly_once_beta",
    Use.REGEX: "topics by regular expression",
}
"""Each feature in Kafka's words."""

SIGNS: Final = {
    Use.FK_JOIN: "foreign-key joins of KTables; subscriptions change in 3.3",
    Use.KTABLE: "aggregations of KTables; repartition topics change in 3.5",
    Use.SUPPRESS: "suppress() of a KTable; its changelogs change up to 2.5.1",
    Use.OUTER_JOIN: "left, outer joins of KStreams; windows of 3.1 add a store",
    Use.STATIC: "members have group.instance.id",
    Use.IQ: "stores are queried, or application.server is set",
    Use.EOS: "processing.guarantee is not at_least_once; the version, if known:",
    Use.EOS_V1: "members run exactly_once now; a bounce may switch them to v2",
    Use.EOS_V2: "members run exactly_once_v2 or exactly_once_beta now",
    Use.REGEX: "topics are subscribed by a pattern; concerns --to streams only",
}
"""What shows in an application that it uses a feature."""

VERSIONS: Final = {Use.EOS_V1: 1, Use.EOS_V2: 2}
"""The uses that say which version of exactly-once members run now; each comes with `Use.EOS`."""


def read_uses(text: str) -> frozenset[Use]:
    """Return the features that a list names, separated by commas, in upper or lower case.

    A version of exactly-once adds `Use.EOS`.

    Raises:
        ValueError: an unknown name, and the message lists those that exist; or both versions.
    """
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    unknown = sorted(set(words) - set(Use))
    if unknown:
        known = ", ".join(f"{use} ({FEATURES[use]})" for use in Use)
        raise ValueError(f"unknown value {unknown[0][:40]!r} for --uses; choose from {known}")
    found = frozenset(map(Use, words))
    if found >= set(VERSIONS):
        raise ValueError("--uses has eos-v1 and eos-v2; give the one that all members run now")
    return found | ({Use.EOS} if found & set(VERSIONS) else set())


def version_of(uses: Iterable[Use]) -> int | None:
    """Return the version of exactly-once that members are said to run; None if nothing says it."""
    return next((VERSIONS[use] for use in uses if use in VERSIONS), None)


# Use -> (first release with it, what it is there).
_SINCE: Final = {
    Use.FK_JOIN: ("2.4.0", "foreign-key joins, which exist since 2.4.0 (KIP-213)"),
    Use.SUPPRESS: ("2.1.0", "suppressed results: suppress() exists since 2.1.0 (KIP-328)"),
    Use.STATIC: ("2.3.0", "static members: group.instance.id exists since 2.3.0 (KIP-345)"),
    Use.IQ: ("0.10.1.0", "interactive queries, which exist since 0.10.1.0 (KIP-67)"),
    Use.EOS: ("0.11.0.0", "exactly-once: processing.guarantee exists since 0.11.0.0 (KIP-129)"),
    Use.REGEX: ("0.10.1.0", "topics by pattern, which exist since 0.10.1.0 (KAFKA-3443)"),
}


def check_uses(old: Release, new: Release, uses: Iterable[Use]) -> None:
    """Check that releases have the features of an application.

    Raises:
        OptionError: one of them does not have a feature, or `old` not the version of exactly-once.
    """
    version = version_of(uses)
    if version is not None and not has_version(old, version):
        raise OptionError(
            f"{old.name} has no version {version} of exactly-once: exactly_once exists up to 3.9,"
            " exactly_once_beta and exactly_once_v2 since 2.6; name the one that members run now"
        )
    for release in (old, new):
        for use in sorted(set(uses) & set(_SINCE)):
            since, what = _SINCE[use]
            if release.order < find_release(since).order:
                raise OptionError(
                    f"{release.name} has no {what}; leave {use} out of --uses, or take releases"
                    f" from {since} on"
                )
