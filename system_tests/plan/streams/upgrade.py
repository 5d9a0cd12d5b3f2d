"""A new release for the members of a streams group (KIP-1071), whose brokers assign the tasks.

Members write no subscriptions, so no release needs `upgrade.from`: one rolling bounce does it,
in both directions. State on disk, settings and the protocol's messages change with the release.
"""

from typing import Final

from probing import Release
from probing import upgrades as data
from system_tests.plan.changes import (
    CHANGES,
    STREAMS_NOT_CHECKED,
    changes_between,
    streams_changes,
)
from system_tests.plan.changes.formats import deletions
from system_tests.plan.group import UNNAMED, SimulatedGroup
from system_tests.plan.streams.brokers import (
    FIRST_BROKERS,
    FIRST_STATIC,
    broker_row,
    reports_offsets,
    static_members_need,
)
from system_tests.plan.streams.move import EARLY_ACCESS, FIRST_MEMBERS, MoveStep, StreamsMove
from system_tests.plan.uses import Use

_KEPT: Final = (
    (
        "the group, its epoch, its committed offsets and its assignment; members that stay keep"
        " their tasks"
    ),
    (
        "streams.version, which is to stay at 1: members end with UnsupportedVersionException"
        " within seconds when it is lowered"
    ),
)
_TOPOLOGY: Final = (
    "the topology has to stay the same (KAFKA-20170): check that the new program builds the same"
    " one, with the names of its internal topics (rolling-bounce plan --topology OLD NEW)"
)
_MIXED: Final = (
    "members of both releases in one group: brokers take both versions of the heartbeat, by the"
    " tables of Kafka's messages, not run"
)


def plan_streams_upgrade(
    old: Release,
    new: Release,
    brokers: Release,
    uses: frozenset[Use],
    *,
    records: int | None = None,
    unchecked: str = "",
    group: SimulatedGroup = UNNAMED,
) -> StreamsMove:
    """Return the plan that brings the members of a streams group to another release.

    Args:
        old: release of the members.
        new: their target release; a lower one is a rollback.
        brokers: release of the brokers.
        uses: features of the application.
        records: changelog records of all tasks; None: not known.
        unchecked: what of a saved group could not be checked, and why; often empty.
        group: that the commands name.

    Raises:
        ReleaseError: `brokers` is not a release of Kafka.
    """
    obstacles = tuple(_obstacles(old, new, brokers, uses))
    is_same = old.name == new.name
    demands = deletions(data.one_way_formats_between(new, old), new)
    back = deletions(data.one_way_formats_between(old, new), old)
    steps = (
        ()
        if obstacles or is_same
        else (_step((old, new, brokers), uses, (demands, back, records), group.id),)
    )
    stops = (old, new)
    return StreamsMove(
        title=f"{old.name} to {new.name}, a streams group (KIP-1071), brokers {brokers.name}",
        how="nothing to do, every member already runs it" if is_same else "one rolling bounce",
        release=new.name,
        brokers=brokers.name,
        assignor=broker_row(brokers).assignor,
        uses=tuple(sorted(uses)),
        obstacles=obstacles,
        steps=steps,
        kept=_KEPT,
        downtime=(
            "none of all partitions together: the tasks of a member stop from its stop until"
            " another member has restored them; there are no warm-ups"
        ),
        no_return="none on this path"
        + "; from step 1 on, going back deletes and restores state" * bool(steps and back)
        + static_members_need(uses),
        changes=()
        if is_same
        else (
            *changes_between(stops, uses, CHANGES, brokers=brokers),
            *streams_changes(stops, (brokers, brokers), uses),
        ),
        is_rollback=new.order < old.order,
        not_checked=(*((unchecked,) if unchecked else ()), _TOPOLOGY, _MIXED, *STREAMS_NOT_CHECKED),
    )


def _obstacles(old: Release, new: Release, brokers: Release, uses: frozenset[Use]) -> list[str]:
    """Return every reason that forbids the bounce."""
    row = broker_row(brokers)
    ends = (old, new)
    low = min(ends, key=lambda release: release.order)
    to_brokers = FIRST_STATIC if Use.STATIC in uses else FIRST_BROKERS
    native = next((release.name for release in ends if release.is_native), "")
    is_wrong = not native and old.order < EARLY_ACCESS
    rows = (
        (bool(native), f"{native} is no release of members of a streams group"),
        (
            is_wrong,
            (
                f"{old.name} has no streams protocol, so it is not what members of a streams group"
                " run: give their release as --from"
            ),
        ),
        (
            not native and not is_wrong and low.order < FIRST_MEMBERS,
            (
                f"members of {low.name} have no streams protocol, or its early access: take"
                " the group to the classic protocol first (stop all members, wait for state Empty,"
                " start them with group.protocol=classic), and then change the release"
            ),
        ),
        (
            bool(row.refused),
            f"brokers of {brokers.name} {row.refused}; upgrade them to {to_brokers}",
        ),
        (
            Use.STATIC in uses and not all(reports_offsets(release, brokers) for release in ends),
            (
                f"static members: members of {low.name} with brokers of {brokers.name} refuse"
                " group.instance.id with group.protocol=streams, which needs 4.4 on both sides;"
                + (
                    f" keep members and brokers at {FIRST_STATIC} or later, or make the members"
                    f" dynamic first: bounce them as {old.name} without group.instance.id"
                    if reports_offsets(old, brokers)
                    else f" bring members and brokers to {FIRST_STATIC} or later, or run without"
                    " group.instance.id and leave static out of --uses"
                )
            ),
        ),
        (
            Use.REGEX in uses,
            "regular expressions: members of a streams group subscribe to topics by name",
        ),
    )
    return [sentence for is_obstacle, sentence in rows if is_obstacle]


def _step(
    ends: tuple[Release, Release, Release],
    uses: frozenset[Use],
    state: tuple[tuple[str, ...], tuple[str, ...], int | None],
    group: str,
) -> MoveStep:
    """Return the bounce of the members; it needs no other brokers."""
    old, new, brokers = ends
    demands, back, records = state
    static = Use.STATIC in uses
    leaves = (
        "a static member that is back within streams.session.timeout.ms, with its state directory,"
        " keeps its tasks"
        if static
        else "each member leaves the group when it is closed, so its tasks move to other members,"
        " which restore them, and may move again when it is back"
    )
    size = "" if records is None else f"; all tasks together have {records:,} records in changelogs"
    deletes = f"; {'; '.join(demands)}" if demands else ""
    offsets = (
        "; with brokers of 4.4 or later members would report the offsets of their state"
        if reports_offsets(new, new) and not reports_offsets(new, brokers)
        else ""
    )
    return MoveStep(
        what=f"bounce the members to {new.name}, one after the other, without upgrade.from and"
        f" with group.protocol=streams{deletes}",
        seen=f"assignor inspect --bootstrap-server HOST:PORT --group {group}: Stable, and no"
        " line begins with !; the log of the member shows State transition from REBALANCING to"
        " RUNNING, so its restore is finished; the lag has fallen",
        cost=f"{leaves}; streams.num.standby.replicas of the group shortens it (2 at"
        f" most){size}{offsets}",
        stop="60 s after the start, or 2 times the restore if that is longer, the group is not"
        " Stable or the member is not RUNNING; or a member ends by itself: with an error about"
        " the topology, the new program builds another one",
        back=(
            (
                f"bounce each member that this step has restarted back to {old.name}, one after the"
                " other"
            ),
            *back,
        ),
    )
