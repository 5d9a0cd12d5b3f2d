"""Why a standby or warm-up is on its client, and why a former copy is given up."""

from collections.abc import Callable
from dataclasses import dataclass

from assignor.explain.actives import Reason
from assignor.explain.facts import Facts
from probing.rules import Rule, Rules, always, first


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copy:
    """A copy of a task on a client, given or given up."""

    facts: Facts
    task: int
    client: int

    @property
    def is_warmup(self) -> bool:
        return (self.task, self.client) in self.facts.warmups

    @property
    def had_state(self) -> bool:
        return self.facts.lag(self.task, self.client) is not None

    @property
    def is_hot(self) -> bool:
        return self.facts.is_caught_up(self.task, self.client)

    @property
    def is_for_active(self) -> bool:
        """Whether the task itself belongs here in the end."""
        return self.facts.target(self.task) == self.client

    @property
    def is_passing(self) -> bool:
        """Whether the copy belongs elsewhere in the end."""
        trace = self.facts.trace
        if trace is None or trace.standbys is None or self.is_for_active:
            return False
        return (self.task, self.client) not in trace.standbys

    @property
    def is_extra(self) -> bool:
        """Whether there are more copies than configured."""
        return self.is_warmup or len(self.others) >= self.wanted

    @property
    def wanted(self) -> int:
        return self.facts.state.config.num_standby_replicas

    @property
    def others(self) -> list[int]:
        """Clients of the other standbys of the task."""
        return [c for c in self.facts.copies.get(self.task, ()) if c != self.client]

    def named(self, client: int) -> str:
        return self.facts.name(client)


_Reasons = Rules[_Copy, Callable[[_Copy], str]]


def copy_reason(facts: Facts, task: int, client: int) -> Reason:
    """Return why this standby or warm-up is on the client."""
    return _decide(_GIVEN, _Copy(facts=facts, task=task, client=client))


def dropped_reason(facts: Facts, task: int, client: int) -> Reason:
    """Return why the state of the task on this client is not used any more."""
    return _decide(_DROPPED, _Copy(facts=facts, task=task, client=client))


def dropped(facts: Facts, task: int) -> list[int]:
    """Return the clients that had state of the task and do not keep it, ascending."""
    kept = {facts.active[task], *facts.copies.get(task, ())}
    return [client for client, _ in facts.state.copies(task) if client not in kept]


def _decide(rules: _Reasons, copy: _Copy) -> Reason:
    rule = first(rules, copy)
    return Reason(rule=rule.name, why=rule.says(copy))


def _progress(copy: _Copy) -> str:
    facts = copy.facts
    if not copy.had_state:
        return facts.restore_text(copy.task, copy.client)
    return f"at lag {facts.lag_text(copy.task, copy.client)}"


def _warms_up(copy: _Copy) -> str:
    owner = copy.facts.active[copy.task]
    return f"the task belongs here and runs on {copy.named(owner)} meanwhile; {_progress(copy)}"


def _warms_up_standby(copy: _Copy) -> str:
    facts = copy.facts
    passing = [c for c in copy.others if _Copy(facts=facts, task=copy.task, client=c).is_passing]
    if not passing:
        return f"a standby belongs here; {_progress(copy)}"
    return f"{_instead(copy, passing[0])}; {copy.named(passing[0])} stands in; {_progress(copy)}"


def _extra(copy: _Copy) -> str:
    count = len(copy.others) + 1
    return f"{count} copies for now, num.standby.replicas is {copy.wanted}; {_progress(copy)}"


def _stands_in(copy: _Copy) -> str:
    ends = copy.facts.standbys_in_the_end.get(copy.task, [])
    where = ", ".join(map(copy.named, ends)) or "elsewhere"
    return f"caught up, and stays until the copy on {where} is"


def _former(copy: _Copy) -> str:
    now = copy.facts.active[copy.task]
    return f"{copy.named(copy.client)} ran it before; it runs on {copy.named(now)} now"


def _kept(copy: _Copy) -> str:
    return f"its state is here, {_progress(copy)}"


def _replaced(copy: _Copy) -> list[int]:
    """Former copies that could have been kept instead of a new one."""
    threads = copy.facts.threads
    return [c for c in dropped(copy.facts, copy.task) if threads[c] > 0]


def _instead(copy: _Copy, old: int) -> str:
    """A clause on why the copy is on this client and not on the one that has the state."""
    facts, task = copy.facts, copy.task
    rest = [c for c in (facts.active[task], *copy.others) if c != old]
    gain = facts.tag_values([*rest, copy.client]) - facts.tag_values([*rest, old])
    instead = f"instead of on {copy.named(old)}"
    if gain > 0:
        return f"{instead}: more tag values of the copies, by {gain}"
    racks = facts.state.changelog_racks
    here, crossed_before = facts.crossed(racks, task, copy.client), facts.crossed(racks, task, old)
    if here < crossed_before:
        return f"{instead}: {crossed_before - here} fewer partitions from other racks"
    held, threads = facts.held_in_the_end, facts.threads
    load_here, old_load = held[copy.client] / threads[copy.client], held[old] / max(1, threads[old])
    if facts.trace is not None and facts.trace.why:
        return f"{instead}: {facts.trace.why}"
    if load_here == old_load and (crowd := _crowd(copy, old)):
        return f"{instead}: {crowd}"
    if load_here > old_load:
        return f"{instead}: copies are balanced over all clients"
    loads = f"{load_here:.1f} here in the end, {old_load:.1f} there"
    return f"{instead}, to balance the load per thread: {loads}"


def _crowd(copy: _Copy, old: int) -> str:
    """A clause on too many copies of one client's tasks on the old client, or an empty text."""
    facts, active = copy.facts, copy.facts.active[copy.task]
    tasks = [t for t, c in enumerate(facts.active) if c == active and facts.state.stateful[t]]
    before = sum(old in {c for c, _ in facts.state.copies(t)} for t in tasks)
    after = sum(old in facts.standbys_in_the_end.get(t, ()) for t in tasks)
    here = sum(copy.client in facts.standbys_in_the_end.get(t, ()) for t in tasks)
    if not here <= after < before:
        return ""
    return (
        f"{copy.named(old)} has copies of {before} tasks of {copy.named(active)}, too many to take "
        f"over in a crash; {after} there in the end, {here} here"
    )


def _moved(copy: _Copy) -> str:
    return f"{_instead(copy, _replaced(copy)[0])}; {_progress(copy)}"


def _new(copy: _Copy) -> str:
    facts, task = copy.facts, copy.task
    had = [c for c, _ in facts.state.copies(task) if c != facts.active[task]]
    count = "no other client" if not had else f"only {len(had)} more"
    replicas = f"num.standby.replicas is {copy.wanted}, {count} had its state"
    keys = facts.state.config.rack_aware_assignment_tags
    spread = ""
    if keys:
        held = facts.copies.get(task, [])
        without = [facts.active[task], *(c for c in held if c != copy.client)]
        gain = facts.tag_values([*without, copy.client]) - facts.tag_values(without)
        spread = f"; it adds tag values to the copies: {gain}" if gain else ""
    return f"{replicas}{spread}; {_progress(copy)}"


def _enough(copy: _Copy) -> str:
    held = ", ".join(map(copy.named, copy.facts.copies.get(copy.task, ())))
    where = f", on {held}" if held else ""
    return f"num.standby.replicas is {copy.wanted}{where}"


def _elsewhere(copy: _Copy) -> str:
    return f"{_enough(copy)}; it was {_progress(copy)}"


_GIVEN: _Reasons = (
    Rule(
        "warms up before the task moves here", lambda c: c.is_for_active and not c.is_hot, _warms_up
    ),
    Rule(
        "warms up before a standby moves here",
        lambda c: c.is_warmup and not c.is_hot and c.facts.trace is not None,
        _warms_up_standby,
    ),
    Rule("extra copy, warms up", lambda c: c.is_extra and not c.is_hot, _extra),
    Rule("kept until another is caught up", lambda c: c.is_passing and c.is_hot, _stands_in),
    Rule(
        "the former owner keeps its state",
        lambda c: c.facts.owner(c.task) == c.client and c.had_state,
        _former,
    ),
    Rule("standby kept", lambda c: c.had_state, _kept),
    Rule("standby moved here", lambda c: bool(_replaced(c)), _moved),
    Rule("standby added", always, _new),
)
_DROPPED: _Reasons = (
    Rule(
        "client has no threads",
        lambda c: not c.facts.threads[c.client],
        lambda c: f"{c.named(c.client)} has no threads",
    ),
    Rule("no standbys configured", lambda c: c.wanted == 0, _enough),
    Rule(
        "enough copies elsewhere",
        lambda c: len(c.facts.copies.get(c.task, ())) >= c.wanted,
        _elsewhere,
    ),
    Rule("given up", always, _elsewhere),
)
