"""What has to hold after each rebalance of a changing topology.

A record of each source partition is followed through all partitions of the repartition topics that
its tasks write, up to the stores.
"""

from collections import Counter
from dataclasses import dataclass

from tests.probing.topologies.changes import CHANGES, is_repartition

PARTITIONS = (0, 1)


@dataclass(frozen=True)
class Oracle:
    """The rules of a change; `check...` append what is broken to what was found."""

    change: str

    @property
    def topics(self):
        """Form -> topics of which one task at a time may use a partition."""
        return {p.form: p.topics for program in CHANGES[self.change] for p in program}

    def parts(self, program):
        """Form -> subtopology of a program."""
        return {p.form: p for p in CHANGES[self.change][program - 1]}

    def later_forms(self, form):
        """Forms of the new program alone that replace one of the old program alone."""
        old, new = self.parts(1), self.parts(2)
        if form in new or form not in old:
            return frozenset()
        return frozenset(f for f in new if f not in old and self.topics[f] & self.topics[form])

    def used(self, slot, p):
        """Topics whose partition a member uses."""
        return {t for form, number in slot.running if number == p for t in self.topics[form]}

    def check(self, state, found):
        """At most one form of a partition, no member runs what it cannot, no return by itself."""
        owners = {}
        for n, slot in enumerate(state.slots):
            for form, p in slot.running:
                if form not in self.parts(slot.program):
                    found.breaks("a member runs what it cannot", f"{n} runs {form!r}: {state}")
                for topic in self.topics[form]:
                    owners.setdefault((topic, p), []).append((n, form))
                if any((later, p) in state.ran_new for later in self.later_forms(form)):
                    found.breaks("a partition returns to the old form", f"{p}, {form!r}: {state}")
        for key, runs in owners.items():
            if len(runs) > 1:
                found.breaks("a partition runs twice", f"{key} runs {len(runs)} times: {state}")

    def inputs_of(self, state):
        """Source partitions that are read and that the new program reads as well."""
        kept = {t for p in CHANGES[self.change][1] for t in p.sources if not is_repartition(t)}
        return {(t, p) for t, p in self.readers(state) if t in kept}

    def readers(self, state):
        """Partition of a topic -> the subtopology that reads it, and the program of its member."""
        return {
            (topic, p): (self.parts(slot.program)[form], slot.program)
            for slot in state.slots
            for form, p in slot.running
            if form in self.parts(slot.program)
            for topic in self.parts(slot.program)[form].sources
        }

    def holders(self, state):
        """Members that run a subtopology that one other replaces; balance leaves them a partition.

        Where several are merged or split, there are fewer partitions than members that run one.
        """
        later = {form: self.later_forms(form) for form in self.parts(1)}
        counts = Counter(f for forms in later.values() for f in forms)
        pairs = [
            {form, *forms}
            for form, forms in later.items()
            if len(forms) == 1 and all(counts[f] == 1 for f in forms)
        ]
        return {
            n
            for n, slot in enumerate(state.slots)
            for form, _ in slot.running
            if any(form in pair for pair in pairs)
        }

    def check_handover(self, before, after, found):
        """A member that gets a partition runs it before its last owner has seen the answer."""
        for n, slot in enumerate(after.slots):
            for form, p in slot.running - before.slots[n].running:
                for other, had in enumerate(before.slots):
                    if other != n and had.up and self.used(had, p) & self.topics[form]:
                        found.breaks("a partition runs twice", f"{n}, {other}, {p}: {after}")

    def check_records(self, state, decided, found):
        """A record of each source partition reaches its stores, or what waits is reported.

        A partition that both programs read may wait only where the rules say that the new form was
        reached and no live member has it.
        """
        live = {slot.program for slot in state.slots if slot.up}
        sources = [{t for p in self.parts(program).values() for t in p.sources} for program in live]
        readers, reported = self.readers(state), False
        for topic in sorted(set().union(*sources)):
            for p in PARTITIONS if not is_repartition(topic) else ():
                found.records += 1
                lost, where = self.lost(topic, p, readers)
                allowed = lost and (
                    (where in decided.waiting and 2 not in live)
                    or (where == (topic, p) and not all(topic in names for names in sources))
                )
                reported |= bool(allowed)
                if lost and not allowed:
                    found.breaks("records do not reach their store", f"{topic}-{p} {lost}; {state}")
        found.reported += reported

    def lost(self, topic, p, readers):
        """Why records of a partition do not reach their stores, and where; empty: they do."""
        open_ways, seen = [(topic, p)], set()
        while open_ways:
            way = open_ways.pop()
            seen.add(way)
            if way not in readers:
                return f"stay in {way[0]}-{way[1]}, which no member reads", way
            part, program = readers[way]
            for sink in filter(is_repartition, sorted(part.sinks)):
                wanted = next(p for p in self.parts(program).values() if sink in p.sources)
                for q in PARTITIONS:
                    reader = readers.get((sink, q), (wanted, program))[0]
                    if wanted.logs and reader.logs and wanted.logs.isdisjoint(reader.logs):
                        return f"reach {min(reader.logs)}, not {min(wanted.logs)}", (sink, q)
                    if (sink, q) not in seen:
                        open_ways.append((sink, q))
        return "", (topic, p)

    def check_end(self, state, found):
        """All members run the new program: exactly its tasks run."""
        running = sorted(task for slot in state.slots for task in slot.running)
        wanted = sorted((form, p) for form in self.parts(2) for p in PARTITIONS)
        if running != wanted:
            found.breaks("does not end in the new topology", f"ends with {running}: {state}")
