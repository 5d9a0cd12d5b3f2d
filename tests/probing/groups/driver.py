"""A group of members in memory, without network, time or bytes, rebalanced until it is settled.

A rebalance is one call of the leader's table and one event for every member. ``reachable`` tries
every order of restarts, every leader of every rebalance, and restarts within and beyond the session
timeout, and returns all failures.
"""

from dataclasses import dataclass, field, replace
from functools import cache

from probing import (
    AssignmentReceived,
    MemberVersions,
    NativeAnswer,
    Refuse,
    RejoinNow,
    decide_answers,
    find_release,
    member_step,
    start_member,
    subscription_version,
)
from tests.probing.rebootstrap import well_formed

ROUNDS_MAX = 8
_MODELS = {}


def with_models(name, *, leader_model, member_model):
    """Return a release with other models, registered under a new name."""
    release = find_release(name)
    release = replace(
        release,
        name=f"{name} {leader_model} {member_model}",
        leader_model=leader_model,
        member_model=member_model,
    )
    _MODELS[release.name] = release
    return release


def release_of(member):
    return _MODELS.get(member.release_name) or find_release(member.release_name)


@dataclass
class Round:
    members: tuple
    decision: object = None
    commands: list = field(default_factory=list)
    failures: list = field(default_factory=list)

    @property
    def rejoined(self):
        return any(isinstance(c, RejoinNow) for commands in self.commands for c in commands)


def versions_seen(member_id, numbers, *, leader):
    """Return what a leader of release ``leader`` reads in a subscription with these versions."""
    return MemberVersions(
        member_id=member_id,
        used_version=numbers.used,
        latest_supported_version=numbers.latest_supported,
        native_version=numbers.native,
        readable=numbers.native is None or leader.reads(numbers.used),
        pinned=numbers.pinned,
    )


def rebalance(members, *, leader, level=None):
    """Run one rebalance and return the decision and the commands of all members."""
    numbers = [subscription_version(member) for member in members]
    failures = [n.why for n in numbers if isinstance(n, Refuse)]
    if failures:
        return Round(members=members, failures=failures)
    release = release_of(members[leader])
    decision = decide_answers(
        release,
        [versions_seen(f"m{at}", n, leader=release) for at, n in enumerate(numbers)],
        level=level,
    )
    well_formed.check_once(decision)
    if decision.ends:
        return Round(members=members, decision=decision, failures=[decision.why])
    result = Round(members=(), decision=decision)
    after = []
    for position, (member, answer) in enumerate(zip(members, decision.answers, strict=True)):
        state, commands = member_step(
            member,
            AssignmentReceived(
                received_version=answer.version,
                commonly_supported_version=answer.commonly_supported_version,
                error_code=decision.error_code,
                led_supported_version=decision.lowest_supported_version
                if position == leader
                else None,
                native=NativeAnswer(
                    next_version=answer.next_version, subscription_read=answer.subscription_read
                )
                if answer.is_native
                else None,
            ),
        )
        for value in (state, *commands):
            well_formed.check_once(value)
        after.append(state)
        result.commands.append(commands)
        if state.refusal:
            result.failures.append(state.refusal.why)
    result.members = tuple(after)
    return result


@cache
def settle(members, rounds=0):
    """Return (settled groups, failures, most rounds), over every leader of every rebalance."""
    settled, failures, most = set(), set(), 0
    if rounds > ROUNDS_MAX:
        return frozenset(), frozenset({"never settles"}), rounds
    for leader in range(len(members)):
        result = rebalance(members, leader=leader)
        if result.failures:
            failures.update(result.failures)
        elif not result.rejoined:
            settled.add(result.members)
            most = max(most, 1)
        else:
            inner, inner_failures, inner_most = settle(result.members, rounds + 1)
            settled |= inner
            failures |= inner_failures
            most = max(most, inner_most + 1)
    return frozenset(settled), frozenset(failures), most


@dataclass
class Reached:
    groups: frozenset
    failures: frozenset
    rounds_max: int


def reachable(groups, *, release, upgrade_from=None):
    """Bounce every member of every group, in every order, onto ``release``."""
    fresh = start_member(release, upgrade_from=upgrade_from)
    failures, rounds_max = set(), 0
    todo = {(group, frozenset(range(len(group)))) for group in groups}
    finished, seen = set(), set()
    while todo:
        group, waiting = todo.pop()
        if (group, waiting) in seen:
            continue
        seen.add((group, waiting))
        if not waiting:
            finished.add(group)
        for position in waiting:
            befores = {group}
            if len(group) > 1:  # slow restart: the others rebalance without it
                others = group[:position] + group[position + 1 :]
                rest, why, rounds = settle(others)
                failures |= why
                rounds_max = max(rounds_max, rounds)
                befores |= {(*r[:position], group[position], *r[position:]) for r in rest}
            for before in befores:
                joined = (*before[:position], fresh, *before[position + 1 :])
                settled, why, rounds = settle(joined)
                failures |= why
                rounds_max = max(rounds_max, rounds)
                todo |= {(after, waiting - {position}) for after in settled}
    return Reached(groups=frozenset(finished), failures=frozenset(failures), rounds_max=rounds_max)


def started(release, *, size=3, upgrade_from=None):
    """Return the settled groups of ``size`` members of one release."""
    fresh = start_member(release, upgrade_from=upgrade_from)
    groups, failures, _ = settle((fresh,) * size)
    assert not failures, failures
    return groups


def walk(old, bounces, *, size=3):
    """Bounce a group of ``old`` through ``bounces``; stop at the first one that can fail."""
    groups, rounds_max = started(old, size=size), 0
    for bounce in bounces:
        release = _MODELS.get(bounce.release) or find_release(bounce.release)
        reached = reachable(groups, release=release, upgrade_from=bounce.upgrade_from)
        rounds_max = max(rounds_max, reached.rounds_max)
        if reached.failures:
            return Reached(frozenset(), reached.failures, rounds_max)
        groups = reached.groups
    return Reached(groups, frozenset(), rounds_max)
