"""Data of the release table, from `releases.toml`: every published patch, and what each changed.

A property is written once, at the patch that introduced it, and looked up by patch; nothing is
listed per release. (Kafka keeps five lists by hand; for that reason 3.5.0 crashes on a value that
it accepts.) Each row of the file names its source.
"""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, Final, NamedTuple, TypeVar

from probing.releases.behaviour import LeaderModel, MemberModel
from probing.tables import (
    Form,
    Where,
    all_or_none,
    known_in,
    of_length,
    ordered,
    read_table,
    rows_of,
)

_Model = TypeVar("_Model", LeaderModel, MemberModel)


def _order_of(name: str) -> tuple[int, ...] | None:
    """Return the numbers of a series or patch, None if it is not written as one."""
    parts = name.split(".")
    numbers = tuple(int(part) for part in parts if part.isascii() and part.isdigit())
    return numbers if ".".join(map(str, numbers)) == name else None


def _last_of(name: str) -> tuple[float, ...]:
    """Return where the last patch of a series stands, or a patch, in the order of releases."""
    order = _order_of(name) or ()
    is_series = len(order) < (4 if name.startswith("0.") else 3)
    return (*order, inf) if is_series else order


def _problem_of_patches(patches: Mapping[str, list[int]], _: Mapping[str, Any]) -> str:
    orders = [_order_of(series) for series in patches]
    for series, order, last in zip(patches, orders, [(), *orders], strict=False):
        if order is None or (last is not None and order <= last):
            return f"{series!r} is not a series above the one before"
        if not patches[series] or patches[series] != [*range(len(patches[series]))]:
            return f"{series}: {patches[series]!r} has to be every patch from 0"
    return "" if patches else "no series is there"


def _problem_of_release(name: str, tables: Mapping[str, Any]) -> str:
    series, _, patch = name.rpartition(".")
    if patch in map(str, tables["patches"].get(series, ())):
        return ""
    return f"{name!r} is not a release of [patches]"


def _problem_of_read(name: str, tables: Mapping[str, Any]) -> str:
    return "" if name == TRUNK else _problem_of_release(name, tables)


def _problem_of_series(name: str, tables: Mapping[str, Any]) -> str:
    return "" if name in tables["patches"] else f"{name!r} is not a series of [patches]"


def _problem_of_only_in(row: dict[str, Any], _: Mapping[str, Any]) -> str:
    series = row["since"].rpartition(".")[0]
    only_in = row.get("only_in", series)
    return "" if only_in == series else f"only_in {only_in!r} is not the series of {row['since']}"


def _history(form: Form) -> Where:
    """Return the form of rows each of which holds until the next; the first for all before it."""
    rows = rows_of(Where(form, _problem_of_only_in), "since", rises=_order_of)

    def problem_of(value: list[dict[str, Any]], tables: Mapping[str, Any]) -> str:
        series, patches = next(iter(tables["patches"].items()))
        first = f"{series}.{patches[0]}"
        if value and value[0]["since"] != first:
            return f"row 1 (since {value[0]['since']}) has to start at {first}"
        return rows.problem_of(value, tables)

    return Where(rows.form, problem_of)


TRUNK: Final = "trunk"
"""The name under which announcements of later releases were read."""
_RELEASE: Final = Where(str, _problem_of_release)
_IN_SERIES: Final = Where(str, _problem_of_series)
_SHOWN: Final[dict[str, Form]] = {"source": str, "shown?": str}
_CLAIMED: Final[dict[str, Form]] = {"source": str, "claims?": [str]}
_SINCE: Final[dict[str, Form]] = {"since": _RELEASE, "only_in?": _IN_SERIES, **_SHOWN}
_VERSION: Final[dict[str, Form]] = {"version": int, "what": str, "native_start?": int}
_UPGRADE_FROM: Final[dict[str, Form]] = {**_SINCE, "first?": _IN_SERIES, "last?": _IN_SERIES}
_FORMAT: Final[dict[str, Form]] = {
    "name": str,
    "use": str,
    "exists_since": _RELEASE,
    "changed_in": _RELEASE,
    "needs_reset?": bool,
    "reads_former_since?": _RELEASE,
    "former_is_restored?": bool,
    "last_old_series?": _IN_SERIES,
    "honoured_since?": _RELEASE,
    "what": str,
    **_CLAIMED,
}
_ISSUE: Final[dict[str, Form]] = {
    "id": str,
    "since": _RELEASE,
    "fixed_in": of_length(_RELEASE, 1),
    "summary": str,
    "source": str,
}
_READ: Final[dict[str, Form]] = {
    "release": Where(str, _problem_of_read),
    "date": str,
    "nothing?": bool,
    "source": str,
}
_CRASHING: Final[dict[str, Form]] = {"since": _RELEASE, "until_last": _RELEASE, "value": _IN_SERIES}
_CHANGED: Final[dict[str, Form]] = {"since": _RELEASE, "what": str, **_CLAIMED}
_NATIVE: Final = known_in(int, "native_version", "version")
RELEASE_TABLES: Final = read_table(
    "probing.releases",
    "releases.toml",
    {
        "patches": Where({"*": [int]}, _problem_of_patches),
        "read": rows_of(_READ, "release"),
        "version": _history({"since": _RELEASE, **_VERSION, **_SHOWN}),
        "native_version": rows_of(
            {"version": int, "readable_since": int, "summary": str}, "version", rises=int
        ),
        "native_release": rows_of(
            {"name": str, "native_versions": of_length(_NATIVE, 1), "summary": str}, "name"
        ),
        "leader": _history({**_SINCE, "model": tuple(LeaderModel.__members__)}),
        "member": _history({**_SINCE, "model": tuple(MemberModel.__members__)}),
        "upgrade_from": _history(
            ordered(
                all_or_none(_UPGRADE_FROM, "first", "last"),
                _last_of,
                "first <= last",
                "last < since",
            )
        ),
        "crashing_value": rows_of(
            ordered(
                {**_CRASHING, "why": str, **_CLAIMED},
                _last_of,
                "since <= until_last",
                "value < since",
            ),
            "since",
            "value",
        ),
        "format": rows_of(
            ordered(
                all_or_none(_FORMAT, "last_old_series", "honoured_since"),
                _last_of,
                "exists_since < changed_in",
                "changed_in < reads_former_since",
                "last_old_series < changed_in",
                "changed_in <= honoured_since",
            ),
            "name",
        ),
        "one_way_format": rows_of(_CHANGED, "since", rises=_order_of),
        "former_answer": rows_of(_CHANGED, "since", rises=_order_of),
        "issue": rows_of(ordered(_ISSUE, _last_of, "since < fixed_in"), "id"),
    },
)
PATCHES_BY_SERIES: Final[dict[str, tuple[int, ...]]] = {
    series: tuple(patches) for series, patches in RELEASE_TABLES["patches"].items()
}
"""The patches of each series, oldest series first."""

READ: Final[dict[str, dict[str, Any]]] = {row["release"]: row for row in RELEASE_TABLES["read"]}
"""What was read to find the rows of a release, and when; of `TRUNK`, what is announced."""

LATEST_VERSION_SINCE: Final = tuple(
    (str(row["since"]), int(row["version"]), str(row["what"])) for row in RELEASE_TABLES["version"]
)
"""First release that writes each version, and what the version brought."""


class NativeVersionRow(NamedTuple):
    """A native version; programs whose latest version is ``readable_since`` or above read it."""

    version: int
    readable_since: int
    summary: str


NATIVE_VERSIONS: Final = tuple(NativeVersionRow(**row) for row in RELEASE_TABLES["native_version"])


class NativeReleaseRow(NamedTuple):
    """A native release, and the native versions that it reads and writes besides Kafka's."""

    name: str
    native_versions: tuple[int, ...]
    summary: str


NATIVE_RELEASES: Final = tuple(
    NativeReleaseRow(row["name"], tuple(row["native_versions"]), row["summary"])
    for row in RELEASE_TABLES["native_release"]
)


def _models(
    rows: Iterable[dict[str, Any]], models: type[_Model]
) -> tuple[tuple[str, str | None, _Model], ...]:
    return tuple((row["since"], row.get("only_in"), models[row["model"]]) for row in rows)


LEADER_MODEL_SINCE: Final = _models(RELEASE_TABLES["leader"], LeaderModel)
MEMBER_MODEL_SINCE: Final = _models(RELEASE_TABLES["member"], MemberModel)
"""A row holds from its release on, until the next row; with a series, in that series only."""

UPGRADE_FROM_SINCE: Final[tuple[tuple[str, str | None, tuple[str, str] | None], ...]] = tuple(
    (row["since"], row.get("only_in"), (row["first"], row["last"]) if "last" in row else None)
    for row in RELEASE_TABLES["upgrade_from"]
)
"""First and last series that `upgrade.from` accepts; None if the setting does not exist."""

PIN_BY_LAST_SERIES: Final = (("0.10.0", 1), ("1.1", 2))
"""``upgrade.from`` up to this series pins this version; later series pin none."""

LAST_EAGER_SERIES: Final = "2.3"
FIRST_COOPERATIVE_PATCH: Final = "2.4.0"
FIRST_PATCH_WITHOUT_EAGER: Final = "4.0.0"
"""From this patch on, values that need the eager protocol are refused at start."""
WITHOUT_EAGER: Final = "4.0 removed the eager rebalance protocol (KAFKA-18839)"
BRIDGE_SERIES: Final = ("3.5", "3.6", "3.7", "3.8", "3.9")
"""Intermediate releases for a group at 2.3 or below on its way to 4.0."""

KEPT_FORMATS: Final = tuple(
    (row["name"], row["last_old_series"], row["honoured_since"])
    for row in RELEASE_TABLES["format"]
    if "last_old_series" in row
)
"""(name, last series that writes it, first patch that keeps it) of what ``upgrade.from`` keeps."""

CRASHING_VALUES: Final = tuple(
    (row["since"], row["until_last"], row["value"], row["why"])
    for row in RELEASE_TABLES["crashing_value"]
)
"""(first patch, last patch, value, why): accepted by the config, fatal in the assignor."""


class IssueRow(NamedTuple):
    """A known issue: open from ``since`` until the patch of ``fixed_in`` on the same branch."""

    id: str
    since: str
    fixed_in: tuple[str, ...]
    summary: str


ISSUES: Final = tuple(
    IssueRow(row["id"], row["since"], tuple(row["fixed_in"]), row["summary"])
    for row in RELEASE_TABLES["issue"]
)
