"""Data of the release table: every released Kafka Streams patch, and what each patch changed.

A property is written once, at the patch that introduced it, and looked up by patch; nothing is
listed per release. (Kafka keeps five lists by hand; for that reason 3.5.0 crashes on a value that
it accepts.)

Sources: the published artifacts, the code at each release's tag, KIP-268 and the issues named in
the rows.
"""

from typing import Final, NamedTuple

from probing.releases.behaviour import LeaderModel, MemberModel

# Every patch that was published, one series a line. Two numbers after "0.x" name a patch there.
PATCHES_BY_SERIES: Final[dict[str, str]] = {
    "0.10.0": "0 1",
    "0.10.1": "0 1",
    "0.10.2": "0 1 2",
    "0.11.0": "0 1 2 3",
    "1.0": "0 1 2",
    "1.1": "0 1",
    "2.0": "0 1",
    "2.1": "0 1",
    "2.2": "0 1 2",
    "2.3": "0 1",
    "2.4": "0 1",
    "2.5": "0 1",
    "2.6": "0 1 2 3",
    "2.7": "0 1 2",
    "2.8": "0 1 2",
    "3.0": "0 1 2",
    "3.1": "0 1 2",
    "3.2": "0 1 2 3",
    "3.3": "0 1 2",
    "3.4": "0 1",
    "3.5": "0 1 2",
    "3.6": "0 1 2",
    "3.7": "0 1 2",
    "3.8": "0 1",
    "3.9": "0 1 2",
    "4.0": "0 1 2",
    "4.1": "0 1 2",
    "4.2": "0 1 2",
    "4.3": "0 1",
    "4.4": "0",
}

# First release that writes each version, and what the version brought.
LATEST_VERSION_SINCE: Final = (
    ("0.10.0.0", 1, "process id, previous tasks"),
    ("0.10.1.0", 2, "endpoints and host map (KIP-67)"),
    ("2.0.0", 3, "the supported version: version probing (KIP-268)"),
    ("2.1.0", 4, "error code in answers (KAFKA-5037)"),
    ("2.4.0", 5, "topic dictionary (KAFKA-7149)"),
    ("2.5.0", 6, "host map of standby tasks (KIP-535)"),
    ("2.6.0", 7, "task offset sums, next rebalance (KIP-441)"),
    ("2.6.1", 8, "a byte that differs in each subscription (KAFKA-10455)"),
    ("2.8.0", 9, "error code in subscriptions (KIP-671)"),
    ("3.0.0", 10, "named topologies, flat offset sums (KAFKA-12648)"),
    ("3.2.0", 11, "client tags (KIP-708)"),
)


class NativeVersionRow(NamedTuple):
    """A native version; programs whose latest version is ``readable_since`` or above read it."""

    version: int
    readable_since: int
    summary: str


# 102 and 103 emulate later releases for tests; their layouts really differ.
NATIVE_VERSIONS: Final = (
    NativeVersionRow(101, 101, "keys with defaults, the view, what each member reads"),
    NativeVersionRow(102, 101, "emulation for tests: a later layout that 101 can read"),
    NativeVersionRow(103, 103, "emulation for tests: a later layout that 101 cannot read"),
)


class NativeReleaseRow(NamedTuple):
    """A native release, and the native versions that it reads and writes besides 1 to 11."""

    name: str
    native_versions: tuple[int, ...]
    summary: str


NATIVE_RELEASES: Final = (
    NativeReleaseRow("native", (101,), "this program"),
    NativeReleaseRow("next", (101, 102), "emulation for tests: a compatible next release"),
    NativeReleaseRow("incompatible", (101, 103), "emulation for tests: one that breaks the layout"),
)

# A row holds from its release on, until the next row. A row with a series holds in that series only
# (a fix on a branch, while later series were still broken).
LEADER_MODEL_SINCE: Final = (
    ("0.10.0.0", None, LeaderModel.VERSION_1_ONLY),
    ("0.10.1.0", None, LeaderModel.ALWAYS_VERSION_2),
    ("0.10.2.2", "0.10.2", LeaderModel.LOWEST_USED),
    ("0.11.0.3", "0.11.0", LeaderModel.LOWEST_USED),
    ("1.0.2", "1.0", LeaderModel.LOWEST_USED),
    ("1.1.1", "1.1", LeaderModel.LOWEST_USED),
    ("2.0.0", None, LeaderModel.EMPTY_AND_OWN),
    ("2.2.2", "2.2", LeaderModel.EMPTY_AND_LOWEST),
    ("2.3.1", "2.3", LeaderModel.EMPTY_AND_LOWEST),
    ("2.4.0", None, LeaderModel.SEPARATE_TASKS),
    ("2.6.0", None, LeaderModel.NORMAL_OR_DEAD),
    ("2.7.0", None, LeaderModel.NORMAL_OR_ERROR),
)
MEMBER_MODEL_SINCE: Final = (
    ("0.10.0.0", None, MemberModel.NO_PROBING),
    ("2.0.0", None, MemberModel.UNGUARDED),
    ("2.2.2", "2.2", MemberModel.GUARDED),
    ("2.3.1", "2.3", MemberModel.GUARDED),
    ("2.4.0", None, MemberModel.TASKS_KEPT),
    ("2.6.0", None, MemberModel.FOLLOWUP),
    ("3.3.2", None, MemberModel.FOLLOWUP_WAITS),
)

# First and last series that `upgrade.from` accepts; None if the setting does not exist.
UPGRADE_FROM_SINCE: Final[tuple[tuple[str, str | None, tuple[str, str] | None], ...]] = (
    ("0.10.0.0", None, None),
    ("0.10.2.2", "0.10.2", ("0.10.0", "0.10.0")),
    ("0.11.0.3", "0.11.0", ("0.10.0", "0.10.0")),
    ("1.0.2", "1.0", ("0.10.0", "0.10.0")),
    ("1.1.1", "1.1", ("0.10.0", "0.10.0")),
    ("2.0.0", None, ("0.10.0", "1.1")),
    ("2.4.0", None, ("0.10.0", "2.3")),
    ("3.3.0", None, ("0.10.0", "3.2")),
    ("3.4.0", None, ("0.10.0", "3.3")),
    ("3.5.0", None, ("0.10.0", "3.4")),
    ("3.6.2", None, ("0.10.0", "3.5")),
    ("3.7.0", None, ("0.10.0", "3.6")),
    ("3.8.0", None, ("0.10.0", "3.7")),
    ("3.9.0", None, ("0.10.0", "3.8")),
    ("4.0.0", None, ("0.10.0", "3.9")),
    ("4.1.0", None, ("0.10.0", "4.0")),
    ("4.2.0", None, ("2.4", "4.1")),
    ("4.3.0", None, ("2.4", "4.2")),
    ("4.4.0", None, ("2.4", "4.3")),
)

PIN_BY_LAST_SERIES: Final = (("0.10.0", 1), ("1.1", 2))
"""``upgrade.from`` up to this series pins this version; later series pin none."""

LAST_EAGER_SERIES: Final = "2.3"
FIRST_COOPERATIVE_PATCH: Final = "2.4.0"
FIRST_PATCH_WITHOUT_EAGER: Final = "4.0.0"
"""From this patch on, values that need the eager protocol are refused at start."""
WITHOUT_EAGER: Final = "4.0 removed the eager rebalance protocol (KAFKA-18839)"
BRIDGE_SERIES: Final = ("3.5", "3.6", "3.7", "3.8", "3.9")
"""Intermediate releases for a group at 2.3 or below on its way to 4.0."""


class FormatRow(NamedTuple):
    """A format beside the metadata version that a rolling bounce has to keep stable."""

    name: str
    last_old_series: str
    honoured_since: str
    changed_in: str


FORMATS: Final = (
    FormatRow("foreign-key join subscriptions (KAFKA-13769, KAFKA-14646)", "3.3", "3.4.0", "3.3.0"),
    FormatRow("KTable repartition topics (KIP-904)", "3.4", "3.5.0", "3.5.0"),
)
"""Values up to ``last_old_series`` keep the old format, in releases from ``honoured_since`` on."""


class OneWayFormat(NamedTuple):
    """What a release writes that earlier ones cannot read, on disk (`is_state`) or in a topic."""

    since: str
    what: str
    is_state: bool = True


ONE_WAY_FORMATS: Final = (
    OneWayFormat(
        "2.3.0",
        "state stores of DSL tables and windows hold timestamps in a column family (KIP-258)",
    ),
    OneWayFormat("3.0.0", "state stores are written by a newer RocksDB"),
    OneWayFormat(
        "3.5.0", "KTable repartition topics may hold the format of KIP-904", is_state=False
    ),
    OneWayFormat("4.0.0", "state stores are written by a newer RocksDB, in format version 6"),
    OneWayFormat("4.3.0", "state stores hold their offsets in a column family (KIP-1035)"),
)
"""What a group has to give up on the way back below a release, in order of release."""

# (first patch, last patch, value, what happens): accepted by the config, fatal in the assignor.
CRASHING_VALUES: Final = (
    ("3.5.0", "3.5.1", "3.4", "accepted by the configuration, unknown to the assignor"),
)


class IssueRow(NamedTuple):
    """A known issue: open from ``since`` until the patch of ``fixed_in`` on the same branch."""

    id: str
    since: str
    fixed_in: tuple[str, ...]
    summary: str


ISSUES: Final = (
    IssueRow(
        "KAFKA-6054",
        "0.10.0.0",
        ("0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1", "2.0.0"),
        "a leader cannot serve members that write version 1 and members that write version 2",
    ),
    IssueRow(
        "KAFKA-5037",
        "0.10.0.0",
        ("2.1.0",),
        "a missing source topic keeps the leader in an endless loop",
    ),
    IssueRow(
        "KAFKA-8649",
        "2.0.0",
        ("2.2.2", "2.3.1", "2.4.0"),
        "the second number is the leader's own; a member copies it and cannot write it",
    ),
    IssueRow(
        "KAFKA-8972",
        "2.0.0",
        ("2.4.0",),
        "a member drops the tasks of a probing answer and no longer knows what it owns",
    ),
    IssueRow(
        "KAFKA-9821",
        "2.4.0",
        ("2.6.0",),
        "only the member that gives partitions up knows that a follow-up is due; if it restarts as"
        " a static member, its tasks wait for the next rebalance",
    ),
    IssueRow(
        "KAFKA-9525",
        "2.3.0",
        ("2.6.0",),
        "a static member that asks for a rebalance is handed its old answer instead",
    ),
    IssueRow(
        "KAFKA-9568",
        "2.3.0",
        ("2.6.0",),
        "a static member that moved to another host stays unknown to the group's host map",
    ),
    IssueRow(
        "KAFKA-10455",
        "2.6.0",
        ("2.6.1", "2.7.0"),
        "the broker ignores a rejoin with the same bytes, so a follow-up may never happen",
    ),
    IssueRow(
        "KAFKA-14382",
        "2.6.0",
        ("3.3.2", "3.4.0"),
        "a follow-up that fires during a rebalance starts the next one, endlessly",
    ),
    IssueRow(
        "KAFKA-13769",
        "3.3.0",
        ("3.4.0",),
        "foreign-key join subscriptions changed their format without a rolling upgrade path",
    ),
    IssueRow(
        "upgrade.from=3.4",
        "3.5.0",
        ("3.5.2",),
        "the value 3.4 is accepted and then ends the assignor",
    ),
)
