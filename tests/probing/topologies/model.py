"""A model of a rolling change of the topology, explored in every order of its events.

Members run an old program and are bounced to a new one, one at a time, in any order. Up to a number
of crashes happen between events or in the middle of a rebalance (after the leader decided and
before any answer arrives). Members are cooperative: a partition that moves is withheld until its
owner has revoked it. The decisions are those of `probing.topologies`; those of the oracle are not.

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
from tests.probing.topologies.oracle import PARTITIONS, Oracle


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


@dataclass(frozen=True)
class Broken:
    """A broken rule, and how."""

    rule: str
    sentence: str


@dataclass
class Found:
    """What an exploration found; `reported` are rebalances after which partitions wait."""

    states: int = 0
    rebalances: int = 0
    ended: int = 0
    unconfirmed: int = 0
    reported: int = 0
    records: int = 0
    broken: list = field(default_factory=list)

    def breaks(self, rule, sentence):
        """Record a broken rule."""
        self.broken.append(Broken(rule, sentence))


@dataclass(frozen=True)
class Model(Oracle):
    """A change, and who leads.

    `leads`: the program that leads first where both run. `durable`: a state directory keeps the
    memory over a restart.
    """

    leads: int
    crashes: int = 1
    durable: bool = True
    members: int = 3

    def explore(self, *, limit=1):
        """Visit every state; stop after `limit` broken rules."""
        found = Found()
        slots = (Slot(),) * self.members
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
        ran, holders = self.inputs_of(state), self.holders(state)
        for extra in range(4):
            if not any(slot.up for slot in state.slots):
                return state
            after, decided = self.rebalance(state, found)
            self.check(after, found)
            self.check_handover(state, after, found)
            if not decided.withheld:
                stopped = ran - self.inputs_of(after)
                if stopped:
                    found.breaks(
                        "a partition of a live member stops", f"{sorted(stopped)}: {after}"
                    )
                emptied = holders - self.holders(after)
                if emptied and not decided.in_chains:
                    found.breaks("a live member loses its last partition", f"{emptied}: {after}")
                self.check_records(after, decided, found)
                return after
            if extra > 0:
                found.breaks("more than one extra rebalance", f"{after}")
                return after
            state = after
        return state

    def rebalance(self, state, found):
        found.rebalances += 1
        live = [n for n, slot in enumerate(state.slots) if slot.up]
        leader = min(live, key=lambda n: (state.slots[n].program != self.leads, n))
        carriers = {}
        for n in live:
            parts = self.parts(state.slots[n].program)
            carriers[str(n)] = Carrier(
                member_id=str(n),
                process=str(n),
                forms=dict.fromkeys(parts, (state.slots[n].program,)),
                reached=dict(state.slots[n].memory),
                leads=n == leader,
                writes={form: p.sinks for form, p in parts.items()},
            )
        running = {n: frozenset(f for f, _ in state.slots[int(n)].running) for n in carriers}
        decision = decide_forms(list(carriers.values()), self.topics, running=running)
        decided = self.place(state, decision, carriers)
        slots = list(state.slots)
        for n in live:
            memory = newest_memory(dict(slots[n].memory), decision.reached)
            slots[n] = replace(
                slots[n], running=frozenset(decided.given[str(n)]), memory=tuple(memory.items())
            )
        if self.is_unconfirmed(state, live, leader):
            found.unconfirmed += 1
            state = replace(state, ran_new=frozenset())
        running = {task for slot in slots for task in slot.running}
        new = {later for form in self.parts(1) for later in self.later_forms(form)}
        return (
            replace(
                state,
                slots=tuple(slots),
                ran_new=state.ran_new | {task for task in running if task[0] in new},
            ),
            decided,
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
        decided = Decided(given={name: set() for name in carriers})
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
            members = carriers
            if family.able is not None:
                decided.in_chains |= family.forms
                members = {n: c for n, c in carriers.items() if n in family.able}
            released = self.released(family, running, carriers)
            for p in PARTITIONS:
                forms, owners = family.wanted, {}
                if family.able is None:
                    unit = decide_unit(
                        family,
                        running[p],
                        carriers,
                        self.topics,
                        released=frozenset(n for n, ps in released.items() if p in ps),
                    )
                    forms, owners = unit.forms, unit.owners
                if not forms:
                    decided.waiting |= {(t, p) for f in family.forms for t in self.topics[f]}
                for form in sorted(forms):
                    able = [n for n, member in members.items() if form in member.forms]
                    name = owners.get(form) or self.chosen(state, form, p, able, decided)
                    self.give(state, decided, name, form, p)
        return decided

    def give(self, state, decided, name, form, p):
        """Give a task to a member, if there is one; withhold it while another member has it."""
        is_taken = any(
            slot.up and str(n) != name and self.used(slot, p) & self.topics[form]
            for n, slot in enumerate(state.slots)
        )
        if is_taken:
            decided.withheld |= name is not None
        elif name is not None:
            decided.given[name].add((form, p))

    def released(self, family, running, carriers):
        held = {}
        for p in PARTITIONS:
            if any(forms & family.wanted for forms in running[p].values()):
                continue
            for name, forms in sorted(running[p].items()):
                if forms:
                    held.setdefault(name, []).append(p)
                    break
        able = sum(
            family.wanted <= member.forms.keys() and name not in held
            for name, member in carriers.items()
        )
        others = len(PARTITIONS) - sum(map(len, held.values()))
        return shares_released(held, able if family.wanted else 0, others=others)

    def chosen(self, state, form, p, able, decided):
        """The member that ran the form, or the least loaded one that can."""
        return min(
            able,
            key=lambda n: (
                (form, p) not in state.slots[int(n)].running,
                not self.used(state.slots[int(n)], p) & self.topics[form],
                len(decided.given[n]),
                n,
            ),
            default=None,
        )


@dataclass
class Decided:
    """A rebalance: tasks by member, partitions that wait, and forms that change together."""

    given: dict
    waiting: set = field(default_factory=set)
    in_chains: frozenset = frozenset()
    withheld: bool = False


def with_slot(state, number, slot):
    slots = list(state.slots)
    slots[number] = slot
    return replace(state, slots=tuple(slots))
