"""Search of a state space: every group that any number of bounces can lead to.

A group is a sorted tuple of members; their names do not matter. For each group every leader is
tried; in each rebalance every subset of the members gets its answer before the next bounce
interrupts it; each bounce is quick (the member is replaced at once) or slow (it leaves, and the
others may rebalance without it). The search ends when it finds no new group, so it covers any
number of bounces in any order.
"""

import itertools
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property

from probing import RejoinNow, find_release, start_member
from tests.probing.groups import driver

JVM_NAMES = {2: "1.1.1", 3: "2.0.1", 4: "2.3.1", 9: "2.8.2", 11: "3.9.2"}
UNSETTLED = 99


def future_release(latest=12):
    """A JVM release of a version that does not exist yet, behaving as the newest one."""
    newest = find_release("3.9.2")
    release = replace(
        newest,
        name=f"future {latest}",
        known_versions=tuple(range(1, latest + 1)),
        latest_version=latest,
    )
    driver._MODELS[release.name] = release
    return release


def jvm(latest, pin=None):
    release = find_release(JVM_NAMES[latest]) if latest in JVM_NAMES else future_release(latest)
    return start_member(release, upgrade_from=pin)


def native_member(name="native", **settings):
    return start_member(find_release(name), **settings)


def is_native(member):
    return bool(member.native_versions)


def label(member):
    pin = f" upgrade.from={member.upgrade_from}" if member.pinned else ""
    return f"{member.release_name}{pin} writes {member.used_version}"


@dataclass(frozen=True)
class Outcome:
    """One rebalance: the members afterwards and which of them rejoin, in the order of the group."""

    members: tuple
    rejoined: tuple
    why_died: str = ""


class StateSpace:
    """Every group of up to three members that bounces between the fresh members ``kinds``."""

    def __init__(self, kinds, *, level=None, size=3):
        self.kinds, self.level, self.size = tuple(kinds), level, size
        self._numbers, self._members = {}, []
        self._outcomes, self._rounds = {}, {}

    def members(self, group):
        return tuple(self._members[number] for number in group)

    def labels(self, group):
        return [label(member) for member in self.members(group)]

    def has_native(self, group):
        return any(is_native(member) for member in self.members(group))

    def outcome(self, group, leader):
        found = self._outcomes.get((group, leader))
        if found is None:
            played = driver.rebalance(self.members(group), leader=leader, level=self.level)
            found = Outcome(members=(), rejoined=(), why_died="; ".join(played.failures))
            if not played.failures:
                found = Outcome(
                    members=tuple(self._number(member) for member in played.members),
                    rejoined=tuple(
                        any(isinstance(command, RejoinNow) for command in commands)
                        for commands in played.commands
                    ),
                )
            self._outcomes[group, leader] = found
        return found

    def rounds(self, group):
        """Rebalances until no member rejoins, with the worst leaders; fatal ones are left out."""
        if group not in self._rounds:
            self._rounds[group] = UNSETTLED  # stays if the group is reached again: a cycle
            most = 1
            for leader in range(len(group)):
                outcome = self.outcome(group, leader)
                if any(outcome.rejoined):
                    most = max(most, 1 + self.rounds(tuple(sorted(outcome.members))))
            self._rounds[group] = most
        return self._rounds[group]

    @cached_property
    def explored(self):
        """(groups that rebalance, settled groups): all reachable ones."""
        fresh = [self._number(member) for member in self.kinds]
        todo = deque((number,) for number in fresh)
        groups, settled = set(todo), set()
        while todo:
            group = todo.popleft()
            reached = set()
            for leader in range(len(group)):
                outcome = self.outcome(group, leader)
                if outcome.why_died:
                    continue
                after = tuple(sorted(outcome.members))
                if any(outcome.rejoined):
                    reached.add(after)
                else:
                    settled.add(after)
                for heard in itertools.product(*zip(group, outcome.members, strict=True)):
                    reached |= self._bounced(heard, fresh)
            todo.extend(reached - groups)
            groups |= reached
        return groups, settled

    @property
    def groups(self):
        return self.explored[0]

    @property
    def settled(self):
        return self.explored[1]

    @property
    def deaths(self):
        """(group, leader) of each rebalance that ends a member."""
        return [
            (group, leader)
            for group in sorted(self.groups)
            for leader in range(len(group))
            if self.outcome(group, leader).why_died
        ]

    def _bounced(self, group, fresh):
        """Every group after one bounce of ``group``: a member joins, leaves or is replaced."""
        found = {tuple(sorted((*group, member))) for member in fresh if len(group) < self.size}
        for position in range(len(group)):
            others = group[:position] + group[position + 1 :]
            if others:
                found.add(tuple(sorted(others)))
                found |= {tuple(sorted((*others, member))) for member in fresh}
        return found

    def _number(self, member):
        if member not in self._numbers:
            self._numbers[member] = len(self._members)
            self._members.append(member)
        return self._numbers[member]
