"""A model of a rolling change of the topology, explored in every order of its events.

Three members run an old program and are bounced to a new one, one at a time, in any order. Up to a
number of crashes happen between events or in the middle of a rebalance (after the leader decided
and before any answer arrives). Members are cooperative: a partition that moves is withheld until
its owner has revoked it. The decisions are those of `probing.topologies`; the oracle is not.

The rules have a known limit, which is counted and not reported: where a single process remembers
that the new version was reached, cannot run it, and does not lead, it is not believed.
"""

from collections import deque
from dataclasses import dataclass, field, replace

from probing.topologies import (
    Carrier,
    decide_forms,
    decide_unit,
    newest_memory,
    shares_released,
)

PARTITIONS = (0, 1)
SLOTS = (0, 1, 2)

# Form -> topics of which one task at a time may use a partition.
TOPICS = {
    b"kept": frozenset({"a"}),
    b"x": frozenset({"x"}),
    b"c1": frozenset({"c", "c-counts-changelog"}),
    b"c2": frozenset({"c", "c-counts-changelog", "c-totals-changelog"}),
    b"r1": frozenset({"r", "r-counts-changelog"}),
    b"r2": frozenset({"r", "r-totals-changelog"}),
}
CHANGES = {
    "add": ((b"kept",), (b"kept", b"x")),
    "remove": ((b"kept", b"x"), (b"kept",)),
    "change": ((b"kept", b"c1"), (b"kept", b"c2")),
    "rename": ((b"kept", b"r1"), (b"kept", b"r2")),
}
PAIRS = {b"c1": b"c2", b"r1": b"r2"}


@dataclass(frozen=True)
class Slot:
    """A member: its program (1 old, 2 new), whether it is up, what it runs and remembers."""

    program: int = 1
    up: bool = True
    running: frozenset = frozenset()
    memory: tuple = ()


@dataclass(frozen=True)
class State:
    """The group, what ran in the new form so far, and the crashes that may still happen."""

    slots: tuple
    crashes: int
    ran_new: frozenset = frozenset()
    reached: bool = False


@dataclass(frozen=True)
class Broken:
    """A broken rule, and how."""

    rule: str
    sentence: str


@dataclass
class Found:
    """What an exploration found."""

    states: int = 0
    rebalances: int = 0
    ended: int = 0
    unconfirmed: int = 0
    broken: list = field(default_factory=list)

    def breaks(self, rule, sentence):
        """Record a broken rule."""
        self.broken.append(Broken(rule, sentence))


@dataclass(frozen=True)
class Model:
    """A change, and who leads.

    `leads`: the program that leads first where both run. `durable`: a state directory keeps the
    memory over a restart.
    """

    change: str
    leads: int
    crashes: int = 1
    durable: bool = True

    def carried(self, program):
        return CHANGES[self.change][program - 1]

    def explore(self, *, limit=1):
        """Visit every state; stop after `limit` broken rules."""
        found = Found()
        slots = tuple(Slot() for _ in SLOTS)
        first = self.settled(State(slots=slots, crashes=self.crashes), found)
        seen, queue = {first}, deque([first])
        while queue and len(found.broken) < limit:
            state = queue.popleft()
            found.states += 1
            if all(slot.up and slot.program == 2 for slot in state.slots):
                found.ended += 1
                self.check_end(state, found)
            for after in self.events(state, found):
                if after not in seen:
                    seen.add(after)
                    queue.append(after)
        return found

    def events(self, state, found):
        """The states after each event that can happen now."""
        for number, slot in enumerate(state.slots):
            if not slot.up:
                yield self.settled(with_slot(state, number, replace(slot, up=True)), found)
            elif slot.program == 1 and all(other.up for other in state.slots):
                stopped = Slot(program=2, up=False, memory=slot.memory if self.durable else ())
                yield self.settled(with_slot(state, number, stopped), found)
            if slot.up and state.crashes:
                crashed = replace(self.crashed(state, number), crashes=state.crashes - 1)
                yield self.settled(crashed, found)
                for joining, other in enumerate(state.slots):
                    if not other.up:
                        # A rebalance was decided, and no answer arrived: nothing has changed.
                        both = with_slot(crashed, joining, replace(other, up=True))
                        yield self.settled(both, found)

    def crashed(self, state, number):
        slot = state.slots[number]
        memory = slot.memory if self.durable else ()
        return with_slot(state, number, Slot(program=slot.program, up=False, memory=memory))

    def settled(self, state, found):
        """Rebalance until nothing is withheld; the rules hold after each rebalance."""
        ran, holders = self.units_of(state), self.holders(state)
        for extra in range(4):
            if not any(slot.up for slot in state.slots):
                return state
            after, waits = self.rebalance(state, found)
            self.check(after, found)
            self.check_handover(state, after, found)
            if not waits:
                stopped = ran - self.units_of(after)
                if stopped:
                    found.breaks(
                        "a partition of a live member stops", f"{sorted(stopped)}: {after}"
                    )
                emptied = holders - self.holders(after)
                if emptied:
                    found.breaks("a live member loses its last partition", f"{emptied}: {after}")
                self.check_owners(after, found)
                return after
            if extra > 0:
                found.breaks("more than one extra rebalance", f"{after}")
                return after
            state = after
        return state

    def rebalance(self, state, found):
        found.rebalances += 1
        live = [n for n in SLOTS if state.slots[n].up]
        leader = min(live, key=lambda n: (state.slots[n].program != self.leads, n))
        carriers = {
            str(n): Carrier(
                member_id=str(n),
                process=str(n),
                forms=dict.fromkeys(
                    self.carried(state.slots[n].program), (state.slots[n].program,)
                ),
                reached=dict(state.slots[n].memory),
                leads=n == leader,
            )
            for n in live
        }
        decision = decide_forms(list(carriers.values()), TOPICS)
        given, waits = self.place(state, decision, carriers)
        slots = list(state.slots)
        for n in live:
            memory = newest_memory(dict(slots[n].memory), decision.reached)
            slots[n] = replace(
                slots[n], running=frozenset(given[str(n)]), memory=tuple(memory.items())
            )
        if self.is_unconfirmed(state, live, leader):
            found.unconfirmed += 1
            state = replace(state, ran_new=frozenset())
        running = {task for slot in slots for task in slot.running}
        new = {PAIRS[form] for form in self.carried(1) if form in PAIRS}
        return (
            replace(
                state,
                slots=tuple(slots),
                ran_new=state.ran_new | {task for task in running if task[0] in new},
                reached=state.reached or any(state.slots[n].program == 2 for n in live),
            ),
            waits,
        )

    def is_unconfirmed(self, state, live, leader):
        """Whether one process alone remembers, cannot run the version, and does not lead."""
        remembering = [n for n in live if state.slots[n].memory]
        return (
            len(remembering) == 1
            and remembering != [leader]
            and not any(state.slots[n].program == 2 for n in live)
        )

    def place(self, state, decision, carriers):
        given = {name: set() for name in carriers}
        waits = False
        for family in decision.families:
            running = {
                p: {
                    name: frozenset(
                        form
                        for form, number in state.slots[int(name)].running
                        if number == p and form in family.forms
                    )
                    for name in carriers
                }
                for p in PARTITIONS
            }
            released = self.released(family, running, carriers)
            for p in PARTITIONS:
                unit = decide_unit(
                    family,
                    running[p],
                    carriers,
                    released=frozenset(n for n, ps in released.items() if p in ps),
                )
                for form in sorted(unit.forms):
                    name = unit.member or self.chosen(form, p, running[p], carriers, given)
                    if name is None:
                        continue
                    others = [n for n, forms in running[p].items() if forms and n != name]
                    if others:
                        waits = True
                    else:
                        given[name].add((form, p))
        return given, waits

    def released(self, family, running, carriers):
        held = {}
        for p in PARTITIONS:
            for name, forms in running[p].items():
                if forms and not forms & family.wanted:
                    held.setdefault(name, []).append(p)
        able = sum(
            family.wanted <= member.forms.keys() and name not in held
            for name, member in carriers.items()
        )
        others = len(PARTITIONS) - sum(map(len, held.values()))
        return shares_released(held, able if family.wanted else 0, others=others)

    def chosen(self, form, p, running, carriers, given):
        """The member that ran the form, or the least loaded one that can."""
        able = [n for n, c in carriers.items() if form in c.forms]
        return min(
            able,
            key=lambda n: (form not in running[n], not running[n], len(given[n]), n),
            default=None,
        )

    # The oracle

    def check(self, state, found):
        """At most one form of a partition, no member runs what it cannot, no return by itself."""
        owners = {}
        for n, slot in enumerate(state.slots):
            for form, p in slot.running:
                if form not in self.carried(slot.program):
                    found.breaks("a member runs what it cannot", f"{n} runs {form!r}: {state}")
                owners.setdefault((min(TOPICS[form]), p), []).append((n, form))
                if (PAIRS.get(form), p) in state.ran_new:
                    found.breaks("a partition returns to the old form", f"{p}, {form!r}: {state}")
        for key, runs in owners.items():
            if len(runs) > 1:
                found.breaks("a partition runs twice", f"{key} runs {len(runs)} times: {state}")

    def units_of(self, state):
        """Partitions that run, whatever the form; those of retired subtopologies do not count."""
        return {
            (min(TOPICS[form]), p)
            for slot in state.slots
            for form, p in slot.running
            if form in self.carried(2) or form in PAIRS
        }

    def holders(self, state):
        """Members that run a changed subtopology; balance leaves each of them a partition."""
        return {
            n
            for n, slot in enumerate(state.slots)
            for form, _ in slot.running
            if form in PAIRS or form in PAIRS.values()
        }

    def check_handover(self, before, after, found):
        """A member that gets a partition runs it before its last owner has seen the answer."""
        for n, slot in enumerate(after.slots):
            for form, p in slot.running - before.slots[n].running:
                for other, had in enumerate(before.slots):
                    if (
                        other != n
                        and had.up
                        and (form, p)
                        in {
                            (new, number)
                            for old, number in had.running
                            for new in (old, PAIRS.get(old))
                        }
                    ):
                        found.breaks("a partition runs twice", f"{n}, {other}, {p}: {after}")

    def check_owners(self, state, found):
        """No task without an owner that could have one."""
        running = {task for slot in state.slots for task in slot.running}
        programs = {slot.program for slot in state.slots if slot.up}
        for program in sorted(programs):
            for form in self.carried(program):
                for p in PARTITIONS:
                    other = PAIRS.get(form) or next(
                        (old for old, new in PAIRS.items() if new == form), None
                    )
                    is_superseded = form in PAIRS and state.reached
                    if (form, p) in running or (other, p) in running or is_superseded:
                        continue
                    found.breaks("a task has no owner", f"{form!r} of partition {p}: {state}")

    def check_end(self, state, found):
        """All members run the new program: exactly its tasks run."""
        running = sorted(task for slot in state.slots for task in slot.running)
        wanted = sorted((form, p) for form in self.carried(2) for p in PARTITIONS)
        if running != wanted:
            found.breaks("does not end in the new topology", f"ends with {running}: {state}")


def with_slot(state, number, slot):
    slots = list(state.slots)
    slots[number] = slot
    return replace(state, slots=tuple(slots))
