"""All changes, from `changes.toml` and `streams.toml`, and what no plan checks."""

from itertools import pairwise
from typing import Any, Final, NamedTuple

from probing import Release, ReleaseError, find_release
from probing import releases as data
from probing.tables import Form, Where, of_length, ordered, read_table, rows_of
from probing.upgrades import seen_with
from system_tests.plan.changes.model import Of, ReleaseChange, Subject, When, Work
from system_tests.plan.uses import Use

# What can destroy state or end members: such a row says whether it was run.
_CLAIMS: Final = (Subject.STORES, Subject.EXACTLY_ONCE)


def _change(row: dict[str, Any]) -> ReleaseChange:
    """Return a row of a file as a change, with its evidence."""
    row = dict(row)
    claims = row.pop("claims", ())
    if claims or Subject[row["subject"]] in _CLAIMS:
        row["source"] += f"; {seen_with(claims)}"
    enums = {
        "subject": Subject[row["subject"]],
        "when": When[row.get("when", When.BEFORE.name)],
        "back_when": When[row.get("back_when", When.AFTER.name)],
        "uses": tuple(map(Use, row.get("uses", ()))),
        "unless": tuple(map(Use, row.get("unless", ()))),
        "work": Work[row["work"]] if "work" in row else None,
        "of": Of[row.get("of", Of.MEMBERS.name)],
        "also": tuple((since, until) for since, until in row.get("also", ())),
        "with_brokers": tuple(row.get("with_brokers", ())),
    }
    return ReleaseChange(**{**row, **enums})


_FILES: Final = "system_tests.plan.changes"
_RELEASE: Final = tuple(release.name for release in data.RELEASES if not release.is_native)
_NO_RELEASE: Final = ("", *_RELEASE)
_WHEN: Final = tuple(When.__members__)
_USES: Final = [tuple(Use)]
_CHANGE: Final[dict[str, Form]] = {
    "since": _RELEASE,
    "until?": _RELEASE,
    "also?": [of_length(_NO_RELEASE, 2, 2)],
    "from_below?": _RELEASE,
    "needs?": _RELEASE,
    "refused_by?": _RELEASE,
    "with_brokers?": of_length(_NO_RELEASE, 2, 2),
    "of?": tuple(Of.__members__),
    "subject": tuple(Subject.__members__),
    "when?": _WHEN,
    "what?": str,
    "action?": str,
    "work?": tuple(Work.__members__),
    "source": str,
    "shown?": str,
    "claims?": [str],
    "uses?": _USES,
    "unless?": _USES,
    "at_switch?": bool,
    "off_by_default?": bool,
    "no_return?": str,
    "back?": str,
    "back_action?": str,
    "back_when?": _WHEN,
}
_BROKERS: Final[dict[str, Form]] = {
    "since": _RELEASE,
    "refused?": str,
    "assignor?": ("sticky",),
    "streams_version?": int,
    "uses_offsets?": bool,
}


def _problem_of_change(row: dict[str, Any], _: object) -> str:
    """Return which range of a row ends before it begins or has a part of another one, and the like.

    A row that concerns a feature has an effect with it, and a row says something of one direction.
    """
    if not ({"what", "back"} & {*row}):
        return "neither what nor back is given"
    position = _NO_RELEASE.index  # of no release 0
    brokers = [row["with_brokers"]] if "with_brokers" in row else []
    ranges = sorted(
        [(row["since"], row.get("until", "")), *row.get("also", ())],
        key=lambda ends: position(ends[0]),
    )
    for since, until in (*ranges, *brokers):
        if until and position(until) <= position(since):
            return f"the range from {since!r} on ends before it begins, with {until!r}"
    for (_, until), (since, _) in pairwise([("", _RELEASE[0]), *ranges]):
        if position(since) < (position(until) or len(_NO_RELEASE)):
            return f"the range from {since!r} on begins before the one before it ends"
    if both := sorted({*row.get("uses", ())} & {*row.get("unless", ())}):
        return f"uses and unless have {both[0]!r}"
    return ""


_ROWS: Final = rows_of(
    Where(ordered(_CHANGE, _RELEASE.index, "from_below <= since"), _problem_of_change),
    "since",
    "subject",
    "what",
    "back",
)
_STREAMS: Final = read_table(_FILES, "streams.toml", {"change": _ROWS})


def _problem_of_announced(name: str, _: object) -> str:
    return "" if data.parse_order(name) else f"{name!r} is not written as a release"


_ANNOUNCED: Final[dict[str, Form]] = {
    "release": Where(str, _problem_of_announced),
    **dict.fromkeys(("what", "action", "source"), str),
}
_NEW: Final[dict[str, Form]] = {"release": _RELEASE, "what": str, "back": str, "source": str}
_CHANGES: Final = read_table(
    _FILES,
    "changes.toml",
    {
        "change": _ROWS,
        "new": rows_of(_NEW, "release", "what"),
        "brokers": rows_of(_BROKERS, "since", rises=_RELEASE.index),
        "announced": rows_of(_ANNOUNCED, "release", "what"),
    },
)

CHANGES: Final = tuple(map(_change, _CHANGES["change"]))
"""Every row for the way from one release to another."""


class New(NamedTuple):
    """What a release offers to programs that ask for it, and what earlier releases have."""

    release: str
    what: str
    back: str
    source: str


NEW: Final = tuple(New(**row) for row in _CHANGES["new"])
"""Every offer, by release; no plan names them."""


class Announced(NamedTuple):
    """What is announced of a release that does not exist yet, with its source."""

    release: str
    what: str
    action: str
    source: str

    def __str__(self) -> str:
        """Return the announcement as a sentence without a full stop."""
        return f"{self.release}: {self.what}; {self.action} [{self.source}]"


ANNOUNCED: Final = tuple(Announced(**row) for row in _CHANGES["announced"])
"""Every announcement, by release."""


def find_target(name: str) -> Release:
    """Return the release that a plan leads to, as `find_release`.

    Raises:
        ReleaseError: no such release; of a later one, the message says how many changes are
            announced, and as of when, and each is a note of the error.
    """
    try:
        return find_release(name)
    except ReleaseError as unknown:
        order, newest = data.parse_order(name.strip()), find_release(data.NEWEST_KAFKA)
        if order is None or order <= newest.order:
            raise
        known = [
            str(row)
            for row in ANNOUNCED
            if (data.parse_order(row.release) or ())[: len(order)] <= order
        ]
        error = ReleaseError(
            f"{unknown}. Changes announced up to it, as of {data.READ[data.TRUNK]['date']}:"
            f" {f'{len(known)} (above)' if known else 'none'}; read Kafka's upgrade guide"
        )
        for row in known:
            error.add_note(row)
        raise error from None


STREAMS_CHANGES: Final = tuple(map(_change, _STREAMS["change"]))
"""What changes with the streams protocol (KIP-1071), whatever the release of the members."""

STREAMS_BROKERS: Final[tuple[dict[str, Any], ...]] = tuple(_CHANGES["brokers"])
"""What brokers from a release on do with streams groups, as keywords of `BrokerRow`."""

NOT_CHECKED: Final = (
    "the application's code: whether it uses an API or a setting that is gone",
    "classes of your own: serdes, exception handlers, rocksdb.config.setter, task assignors",
    "the topology: the plan assumes that it stays the same (rolling-bounce plan --topology)",
    "the brokers: ACLs, quotas, inter.broker.protocol.version; their release without --brokers",
    "the hosts: their Java version, memory, and space on disk for further copies of state",
    "dependencies: frameworks around Kafka Streams, Scala, logging, security providers",
    "dashboards and alarms on metrics and log lines",
    "changes that concern no group: Connect, MirrorMaker, tools, tests",
)
"""What no plan says anything about."""

STREAMS_NOT_CHECKED: Final = (
    "custom client suppliers and named topologies, which members refuse at the start",
    "permissions: the broker creates internal topics with the rights of the members' user",
    "whether stores are on disk or in memory: in memory, all state is restored",
)
"""What the plan of the move says nothing about."""
