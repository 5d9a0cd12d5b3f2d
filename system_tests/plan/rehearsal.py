"""What `rolling-bounce live` rehearses of a plan, and what not; `plan` and `live` say the same."""

from typing import Final

from probing import Release, find_release
from system_tests.plan.steps import PlanStep, UpgradePlan
from system_tests.plan.uses import Use
from system_tests.sim.world import behaviour_of

_TRANSACTIONS: Final = (
    "exactly-once: members of a rehearsal have no processing.guarantee and write no transactions"
)
_FORMATS: Final = (
    "formats of foreign-key joins and of KTable repartition topics: members of a rehearsal have"
    " neither"
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
NOT_REHEARSED: Final = (_TRANSACTIONS, _FORMATS, _STORES, _JVM, _OLD_BROKERS, _OLD_MEMBERS)
"""What no rehearsal covers, as sentences without a full stop."""

_USES: Final = {Use.EOS: _TRANSACTIONS, Use.FK_JOIN: _FORMATS, Use.KTABLE: _FORMATS}
_BROKER: Final = "--broker kafka:RELEASE, with the release of your brokers, 3.3 or later"
_LEAVES: Final = (
    "its members leave the group when they stop, unlike those of Kafka Streams, so its pauses are"
    " shorter than in this plan"
)
_IS_STATIC: Final = (
    "its members are static, so that they stay in the group when they stop: its pauses are those of"
    " plan --uses static, not of this plan"
)
_FIRST_STATIC: Final = (2, 3, 0)
_FIRST_OF_NEW_BROKERS: Final = (2, 1, 0)


def rehearsal_of(made: UpgradePlan, step: PlanStep) -> str:
    """Return the command that rehearses a step with its leg, or why it cannot be rehearsed."""
    if step.rolling and step.stage < 0:
        return f"cannot be rehearsed: {_FORMATS if step.upgrade_from else _TRANSACTIONS}"
    if step.rolling and step.stage >= made.bounces_by_leg[step.leg]:
        return f"cannot be rehearsed: {_FORMATS}"
    legs = (made.stops[step.leg], made.stops[step.leg + 1])
    if step.rolling and step.stage > 0:
        return "together with the step before"
    offline = "" if step.rolling else " --offline"
    command = f"rolling-bounce live --from {legs[0]} --to {legs[1]}{offline}"
    if Use.STATIC not in made.uses and not _can_be_static(*map(find_release, legs)):
        return f"{command} {_BROKER}; {_LEAVES}"
    session_ms = behaviour_of(step.old, None).session_timeout_ms
    command += f" --static --session-timeout-ms {session_ms} --heartbeat-ms 3000 {_BROKER}"
    return command if Use.STATIC in made.uses else f"{command}; {_IS_STATIC}"


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
    found += [_STORES, _JVM, _OLD_BROKERS, *([_OLD_MEMBERS] if is_old else [])]
    return tuple(dict.fromkeys(found))
