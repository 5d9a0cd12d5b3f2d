"""What `rolling-bounce live` rehearses of a plan, and what not; `plan` and `live` say the same."""

from typing import Final, NamedTuple

from probing import Release, find_release
from probing.upgrades import former_answer_is_unreadable
from system_tests.option_fields import MAX_MEMBERS, MAX_SESSION_MS
from system_tests.plan.changes import Brokers
from system_tests.plan.exactly_once import is_guarantee
from system_tests.plan.group import SimulatedGroup
from system_tests.plan.model import PlanStep
from system_tests.plan.steps import UpgradePlan, is_fatal
from system_tests.plan.uses import Use
from system_tests.sim.world import behaviour_of

_TRANSACTIONS: Final = (
    "exactly-once: members of a rehearsal have no processing.guarantee and write no transactions"
)
_FORMATS: Final = (
    "formats of foreign-key joins, of KTable repartition topics and of suppress() buffers: members"
    " of a rehearsal have none of them"
)
_SUBTOPOLOGIES: Final = (
    "more than one subtopology: the groups of live, simulate and explore have one, so none of them"
    " shows what the line with !! says"
)
_STORES: Final = (
    "state: members of a rehearsal have no stores, so neither formats on disk nor restores are"
    " rehearsed"
)
_JVM: Final = (
    "the JVM: members of a rehearsal emulate the protocol of a release; test its Java version,"
    " settings and APIs with your application"
)
_OLD_BROKERS: Final = "brokers below 3.3, which need ZooKeeper: a rehearsal starts 3.3 and later"
_OLD_MEMBERS: Final = (
    "brokers of 4.0 and later with members below 2.1, which they refuse (KIP-896): the clients of a"
    " rehearsal send newer requests, so it does not show this"
)
NOT_REHEARSED: Final = (
    _TRANSACTIONS,
    _FORMATS,
    _SUBTOPOLOGIES,
    _STORES,
    _JVM,
    _OLD_BROKERS,
    _OLD_MEMBERS,
)
"""What no rehearsal covers, as sentences without a full stop."""

_USES: Final = {
    Use.EOS: _TRANSACTIONS,
    **dict.fromkeys((Use.FK_JOIN, Use.KTABLE, Use.SUPPRESS), _FORMATS),
}
_RELEASE: Final = "RELEASE is that of your brokers, 3.3 or later"
_FIRST_BROKERS: Final = "3.3"
_LEAVES: Final = (
    "its members leave the group when they stop, unlike those of Kafka Streams, so its pauses are"
    " shorter than in this plan"
)
_IS_STATIC: Final = (
    "its members are static, so that they stay in the group when they stop; compare its pauses with"
    " plan --uses static, or let each session expire, as those of your members do: --restart-ms"
    " above the session timeout"
)
_SIZES: Final = (
    f"it has 3 members and 6 partitions; give --members, {MAX_MEMBERS} at most, and --partitions"
)
_SHORTER: Final = f"its session timeout is {MAX_SESSION_MS} ms, the most that it takes"
_TOGETHER: Final = "together with the step before"
_FIRST_STATIC: Final = (2, 3, 0)
_FIRST_OF_NEW_BROKERS: Final = (2, 1, 0)


class Rehearsal(NamedTuple):
    """How a step is rehearsed: a command, or why it cannot be; and what to know, as sentences."""

    line: str
    notes: tuple[str, ...] = ()
    is_possible: bool = True

    def __str__(self) -> str:
        """Return it as one line."""
        return "; ".join((self.line, *self.notes))


def rehearsal_of(
    made: UpgradePlan, step: PlanStep, group: SimulatedGroup | None = None
) -> Rehearsal:
    """Return the command that rehearses a step with its leg, or why it cannot be rehearsed.

    Args:
        made: the plan.
        step: one of its steps.
        group: whose session timeout the rehearsal has; None: the default of the release.
    """
    known = _rehearsal(made, step, None if group is None else group.session_timeout_ms)
    if not known.is_possible or not any(map(is_guarantee, step.settings)):
        return known
    note = f"processing.guarantee cannot be rehearsed: {_TRANSACTIONS}"
    return known._replace(notes=(*known.notes, note))


def _rehearsal(made: UpgradePlan, step: PlanStep, session_ms: int | None) -> Rehearsal:
    if step.rolling and step.stage < 0:
        return _impossible(_FORMATS if step.upgrade_from else _TRANSACTIONS)
    if step.rolling and step.stage >= made.bounces_by_leg[step.leg]:
        return _impossible(_FORMATS)
    legs = (made.stops[step.leg], made.stops[step.leg + 1])
    if step.rolling and step.stage > 0:
        return Rehearsal(_TOGETHER)
    offline = "" if step.rolling else " --offline"
    command = f"rolling-bounce live --from {legs[0]} --to {legs[1]}{offline}"
    broker, differs = _broker(made.brokers)
    if Use.STATIC not in made.uses and not _can_be_static(*map(find_release, legs)):
        return Rehearsal(f"{command} {broker}", (*differs, _SIZES, _LEAVES))
    wanted_ms = session_ms or behaviour_of(step.old, None).session_timeout_ms
    least_ms = min(wanted_ms, MAX_SESSION_MS)
    heartbeat_ms = min(3000, least_ms // 3)
    waits = former_answer_is_unreadable(*map(find_release, legs))
    command += " --static" + " --wait-for-sessions" * waits
    command += f" --session-timeout-ms {least_ms} --heartbeat-ms {heartbeat_ms} {broker}"
    differs += (_SIZES, *[_SHORTER] * (wanted_ms > least_ms))
    return Rehearsal(command, (*differs, *[_IS_STATIC] * (Use.STATIC not in made.uses)))


def _broker(brokers: Brokers | None) -> tuple[str, tuple[str, ...]]:
    """Return the option for brokers of a release, and what differs; None: it is not known."""
    if brokers is None:
        return "--broker kafka:RELEASE", (_RELEASE,)
    if _is_too_old(brokers):
        return f"--broker kafka:{_FIRST_BROKERS}", (_OLD_BROKERS,)
    return f"--broker kafka:{brokers.release.name}", ()


def rehearsal_notes(made: UpgradePlan, group: SimulatedGroup | None = None) -> tuple[str, ...]:
    """Return what to know of the rehearsals of all steps, once, without what is not rehearsed."""
    left_out = not_rehearsed(made)
    notes = (note for step in made.steps for note in rehearsal_of(made, step, group).notes)
    return tuple(dict.fromkeys(note for note in notes if not any(map(note.endswith, left_out))))


def _is_too_old(brokers: Brokers) -> bool:
    """Whether a rehearsal cannot start brokers of this release."""
    return brokers.release.order < find_release(_FIRST_BROKERS).order


def _impossible(why: str) -> Rehearsal:
    return Rehearsal(f"cannot be rehearsed: {why}", is_possible=False)


def _can_be_static(old: Release, new: Release) -> bool:
    """Whether members can be static, and then request rebalances as dynamic ones do."""
    are_static = all(not end.is_native and end.order >= _FIRST_STATIC for end in (old, new))
    return are_static and "KAFKA-9525" not in new.open_issues


def not_rehearsed(made: UpgradePlan) -> tuple[str, ...]:
    """Return what a rehearsal of a plan leaves out, as sentences without a full stop."""
    if not made.steps or any(find_release(stop).is_native for stop in made.stops):
        return ()
    is_old = any(find_release(stop).order < _FIRST_OF_NEW_BROKERS for stop in made.stops)
    found = [_USES[use] for use in made.uses if use in _USES]
    found += [_SUBTOPOLOGIES] * (made.rolling and is_fatal(made))
    found += [_STORES, _JVM]
    if made.brokers is None or _is_too_old(made.brokers):
        found += [_OLD_BROKERS]
    if made.brokers is None or made.brokers.problem:
        found += [_OLD_MEMBERS] * is_old
    return tuple(dict.fromkeys(found))
