"""The move of a group to the streams protocol (KIP-1071), in which the broker assigns the tasks.

The move is offline: the coordinator converts an empty classic group, and keeps its committed
offsets. Facts are those of Kafka 4.3.1 and 4.4.0: of their jars, and of moves with real brokers and
members (`live --to streams`). `changes/changes.toml` has what brokers differ in.
"""

from dataclasses import dataclass, replace
from typing import Final

from probing import Release
from system_tests.plan.changes import (
    STREAMS_NOT_CHECKED,
    PathChange,
    streams_changes,
)
from system_tests.plan.figures import spoken
from system_tests.plan.group import UNNAMED, SimulatedGroup
from system_tests.plan.streams.brokers import (
    FIRST_BROKERS,
    FIRST_STATIC,
    BrokerRow,
    broker_row,
    reports_offsets,
    static_members_need,
)
from system_tests.plan.streams.restored import NO_LARGE, Restored, returns_of
from system_tests.plan.uses import FEATURES, Use
from system_tests.sim.world import behaviour_of

TARGET: Final = "streams"
"""The value of `--to` for this move, and of `group.protocol`."""
FIRST_MEMBERS: Final = (4, 2, 0)
EARLY_ACCESS: Final = (4, 1, 0)
RESTORE_RATE: Final = SimulatedGroup().restore
"""Records a second that a member restores of each changelog, if nothing else is given."""
_WAIT_S: Final = 60  # well beyond the initial delay of 3 s and some heartbeats of 5 s
INITIAL_DELAY_MS: Final = 3000
"""`group.streams.initial.rebalance.delay.ms` of brokers of 4.3.1 and 4.4.0."""


_NATIVE: Final = "members of this project do not speak the streams protocol; it is for JVM members"
_ENABLE: Final = (
    "kafka-features.sh --bootstrap-server HOST:PORT upgrade --feature streams.version=1"
)
_NO_FEATURE: Final = (
    "streams.version is not finalized: a cluster that was upgraded keeps level 0; enable it:"
    f" {_ENABLE}"
)
_CHECK_FEATURE: Final = (
    "kafka-features.sh --bootstrap-server HOST:PORT describe: the line Feature: streams.version"
    f" must have FinalizedVersionLevel: 1; if it has 0: {_ENABLE}"
)
_REGEX: Final = (
    "regular expressions: members of {release} refuse to start (Pattern subscriptions are not"
    " supported with the STREAMS protocol); subscribe to topics by name, or stay classic"
)
_STATIC: Final = (
    "static members: {release} refuses group.instance.id with group.protocol=streams; remove it in"
    " a rolling bounce of the classic group first, or bring members and brokers to 4.4"
)

# Of these the plan depends; with the first one, members do not start.
_ASKED: Final = (Use.REGEX, Use.STATIC, Use.IQ, Use.EOS)
_LEAVES: Final = "which leave the group at once"
_LEAVES_STATIC: Final = (
    "which stay in the group as static members until streams.session.timeout.ms has passed"
)
_KEPT: Final = (
    "the committed offsets: members continue where they stopped",
    "changelog and repartition topics, unchanged",
    "what is on the members' disks: state directories and process ids",
)
_LOST: Final = ("generation and member ids",)
_LOST_TASKS: Final = (
    "which member had which task: the first assignment does not know where state is"
)
_REPORTED_TASKS: Final = (
    "which member had which task; but members report the offsets of state on their disks, and the"
    " first assignment uses them (KAFKA-20719)"
)


_NOT_RUN: Final = "other releases than 4.3 and 4.4: real moves were run with these two only"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveStep:
    """One step: what is done and seen when it is done, its cost, when to stop, the way back."""

    what: str
    seen: str
    cost: str
    stop: str
    back: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMove:
    """A planned move, or why there is none; also a new release for a streams group.

    Attributes:
        title: what is planned; how: how members are restarted for it.
        release: of the members, which does not change.
        brokers: release of the brokers; assignor: the one that assigns the tasks there.
        uses: features of the application.
        obstacles: why the group cannot move; if there are any, there are no steps.
        steps: in order.
        kept, lost: what stays of the group, and what does not.
        restored: what a saved group restores; None without one.
        downtime: what it consists of, as a sentence.
        no_return: a sentence about the point of no return.
        back_restores: what members restore that return to the classic protocol, as sentences.
        changes: what else changes; not_checked: what this plan does not check.
        assumed: what is not given, and how to check it, as pairs of sentences.
        rehearsal: the command that rehearses it with the same session timeout; empty without steps.
        is_rollback: members come to an older release.
    """

    title: str
    how: str
    release: str
    brokers: str
    assignor: str
    uses: tuple[str, ...]
    obstacles: tuple[str, ...] = ()
    steps: tuple[MoveStep, ...] = ()
    kept: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    restored: Restored | None = None
    downtime: str = ""
    no_return: str = ""
    back_restores: tuple[str, ...] = ()
    changes: tuple[PathChange, ...] = ()
    assumed: tuple[tuple[str, str], ...] = ()
    not_checked: tuple[str, ...] = ()
    rehearsal: str = ""
    is_rollback: bool = False


def plan_streams_move(
    members: Release,
    brokers: Release,
    uses: frozenset[Use],
    *,
    streams_version: int | None = None,
    session_timeout_ms: int | None = None,
    restored: Restored | None = None,
    restore_rate: int = RESTORE_RATE,
    unchecked: str = "",
    group: SimulatedGroup = UNNAMED,
) -> StreamsMove:
    """Return the plan of the move of a classic group to the streams protocol.

    Args:
        members: release of the members.
        brokers: release of the brokers.
        uses: features of the application.
        streams_version: finalized level of `streams.version`; None: that of a new cluster.
        session_timeout_ms: of the classic members; None: the default of their release.
        restored: what a saved group restores.
        restore_rate: records a second that a member restores of each changelog.
        unchecked: what of the saved group could not be checked, and why; often empty.
        group: that the commands name.

    Raises:
        ReleaseError: `brokers` is not a release of Kafka.
    """
    row = broker_row(brokers)
    reports = reports_offsets(members, brokers)
    level = row.streams_version if streams_version is None else streams_version
    move = StreamsMove(
        title=f"{members.name}, classic to streams protocol (KIP-1071), brokers {brokers.name}",
        how="offline, all members are stopped",
        release=members.name,
        brokers=brokers.name,
        assignor=row.assignor,
        uses=tuple(sorted(uses)),
        obstacles=tuple(_obstacles(members, brokers, row, level, uses)),
        restored=restored,
        lost=(*_LOST, _REPORTED_TASKS if reports else _LOST_TASKS),
        changes=streams_changes((members, members), (brokers, brokers), uses, is_new=True),
        not_checked=(
            *((unchecked,) if unchecked else ()),
            *((_NOT_RUN,) if {members.series, brokers.series} - {"4.3", "4.4"} else ()),
            "features that --uses does not name: "
            + ", ".join(FEATURES[use] for use in _ASKED if use not in uses),
            *STREAMS_NOT_CHECKED,
        ),
    )
    if move.obstacles:
        return move
    if streams_version is None:
        level_is = f"streams.version {level}; a cluster that was upgraded keeps 0"
        move = replace(move, assumed=((level_is, _CHECK_FEATURE),))
    default_ms = behaviour_of(members.name, None).session_timeout_ms
    return _with_steps(move, (session_timeout_ms or default_ms) / 1000, restore_rate, group.id)


def _obstacles(
    members: Release, brokers: Release, row: BrokerRow, level: int, uses: frozenset[Use]
) -> list[str]:
    """Return every reason that forbids the move."""
    has_early_access = members.order >= EARLY_ACCESS
    what = (
        "have the streams protocol as early access only (KIP-1071)"
        if has_early_access
        else "have no streams protocol (KIP-1071)"
    )
    # What the advice names is not refused again: static members need the newer of both.
    target = FIRST_STATIC if Use.STATIC in uses else "4.3"
    command = f"rolling-bounce plan --from {members.name} --to {target}"
    too_old = f"members of {members.name} {what}: bring them to {target} first ({command})"
    to_brokers = FIRST_STATIC if Use.STATIC in uses else FIRST_BROKERS
    rows = (
        (members.is_native, _NATIVE),
        (not members.is_native and members.order < FIRST_MEMBERS, too_old),
        (
            bool(row.refused),
            f"brokers of {brokers.name} {row.refused}; upgrade them to {to_brokers}",
        ),
        (not row.refused and level < 1, _NO_FEATURE),
        (Use.REGEX in uses, _REGEX.format(release=members.name)),
        (
            Use.STATIC in uses and not reports_offsets(members, brokers),
            _STATIC.format(release=min(members, brokers, key=lambda release: release.order).name),
        ),
    )
    return [sentence for is_obstacle, sentence in rows if is_obstacle]


def _with_steps(move: StreamsMove, session_s: float, rate: int, group: str) -> StreamsMove:
    _, returns, restore_s = _restores(move.restored, rate)
    known = move.restored if move.restored is not None and not move.restored.is_unknown else None
    kept_ms = known.restore_ms(rate)[0] if known is not None else 0
    sum_ms = round(1000 * session_s) + INITIAL_DELAY_MS + kept_ms
    return replace(
        move,
        rehearsal=(
            f"rolling-bounce live --from {move.release} --to {TARGET} --broker kafka:{move.brokers}"
            f" --session-timeout-ms {1000 * session_s:.0f}"
            + " --static"
            * (Use.STATIC in move.uses)
        ),
        kept=_KEPT,
        downtime=(
            "all partitions stop from the first stop until their tasks run:"
            f" {spoken(sum_ms, 3)} s plus the start of the JVMs"
            f"{'' if known is not None else ' and the restore'};"
            f" the {spoken(sum_ms, 3)} s are {session_s:g} s of session"
            f" timeout unless members leave, {INITIAL_DELAY_MS / 1000:g} s of"
            f" streams.initial.rebalance.delay.ms{restore_s}"
        ),
        no_return=(
            "none: until streams.version is lowered or brokers are downgraded, the group can go"
            " back at any time; a topology that changes meanwhile has to be"
            " known to the classic members, too" + static_members_need(move.uses)
        ),
        back_restores=returns,
        steps=_steps(move, known, session_s, rate, group),
    )


def _steps(
    move: StreamsMove, known: Restored | None, session_s: float, rate: int, group: str
) -> tuple[MoveStep, ...]:
    """The two steps of the move; `known` is None if nothing is known of the group's state."""
    classic, streams = "group.protocol=classic", "group.protocol=streams"
    restores, *_ = _restores(move.restored, rate)
    inspect = f"assignor inspect --bootstrap-server HOST:PORT --group {group}"
    return (
        MoveStep(
            what="stop all members, and wait until the group is empty",
            seen=f"{inspect}: state Empty",
            cost=(
                f"{session_s:g} s: members do not send LeaveGroup when they are closed, so the"
                " group is empty when their sessions (session.timeout.ms) have expired; to"
                " save that time, close them with LEAVE_GROUP of CloseOptions (KIP-1153)"
            ),
            stop=f"not Empty {2 * session_s:g} s after the last stop: a member still runs",
            back=(f"start the stopped members again, with {classic}",),
        ),
        MoveStep(
            what=f"start all members with {streams}, release {move.release}",
            seen=(
                f"{inspect}: streams"
                " protocol (KIP-1071), Stable, lag 0 or what it was before, and no line begins"
                " with ! but those about committed offsets; other lines with ! are normal while"
                " tasks start; the log of each member shows State transition from REBALANCING"
                " to RUNNING, so its restore is finished"
            ),
            cost=(
                f"{restores}; a member that starts before the group is empty ends with"
                f" GroupIdNotFoundException (Group {group} is not a streams group): start it again"
            ),
            stop=(
                f"{_wait(known, rate)} after the last start, the state is not Stable, a member"
                " is not RUNNING, the lag has not fallen, or a line with ! that is not about"
                " committed offsets is still there; or a member ends by itself, and not with"
                " GroupIdNotFoundException"
            ),
            back=(
                (
                    "stop all members that run with"
                    f" {streams}, {_LEAVES_STATIC if Use.STATIC in move.uses else _LEAVES}"
                ),
                "wait for state Empty",
                f"start all members with {classic}",
            ),
        ),
    )


def _wait(restored: Restored | None, rate: int) -> str:
    """Return after which time an operator stops and decides; None: nothing is known of state."""
    if restored is None:
        return f"{_WAIT_S} s, or 2 times the restore if that is longer,"
    waits = [max(_WAIT_S, -(-2 * ms // 1000)) for ms in restored.restore_ms(rate)]
    if waits == [_WAIT_S] * 2:
        return f"{_WAIT_S} s"
    lost = f", {waits[1]:,} s if all state is lost" if waits[1] > waits[0] else ""
    return f"{waits[0]:,} s (2 times the restore, at least {_WAIT_S} s{lost})"


def _restores(restored: Restored | None, rate: int) -> tuple[str, tuple[str, ...], str]:
    """Return what the move restores, what the way back restores, and how long the move does."""
    if restored is None:
        return (
            "every task that a member without its state gets is restored from its changelog",
            returns_of(NO_LARGE, "all"),
            "; --problem FILE gives the time of the restore",
        )
    if restored.is_unknown:
        return restored.sentence, restored.way_back, "; the restore is of unknown length"
    seconds = restored.seconds(rate)
    return f"{restored.sentence}; {seconds}", restored.way_back, f", and the restore, {seconds}"
