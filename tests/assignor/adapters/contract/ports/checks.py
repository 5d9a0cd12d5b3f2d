"""Members of one client go through rebalances on a broker: what holds of their port and driver.

- The first member gets all tasks. A second one takes half of them, and the first keeps the others;
  when it leaves, the first has all tasks again.
- `join`, `decide` and `take` come in this order, from one thread, of one leader in a generation.
- A rebalance is running while the leader decides. A leader that cannot decide joins again.
- The generation is -1 before the first join, then the broker's; members have different ids.
- A requested rejoin is a new generation, and moves nothing.
- A member whose metadata cannot be decoded gets nothing, and the others go on.
- Timers call once, or not at all if they are cancelled. A broker that answers is no silence.
"""

import re
import threading
import time
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from unittest import mock

from assignor.adapters.membership import Driver
from assignor.errors import TaskAssignmentError
from system_tests.broker import BrokerConfig, running_broker
from system_tests.support.client_members import GROUP, LIMIT_S, LOOPS, MemberGroup
from tests.assignor.adapters.contract.ports import invented

LOOPS["invented"] = invented.run
CLIENTS = tuple(LOOPS)
TASKS = 4
_CALLS = ("join", "decide", "take")


class Calls:
    """What clients call of drivers: (driver, name, thread, generation of its port).

    Attributes:
        fails_next: whether the next leader cannot decide.
    """

    def __init__(self):
        self.rows, self.found = [], []
        self.fails_next = False

    @contextmanager
    def noted(self):
        """Note the calls of all drivers in a block."""
        with ExitStack() as stack:
            for name in _CALLS:
                stack.enter_context(mock.patch.object(Driver, name, self._noting(name)))
            yield self

    def _noting(self, name):
        call = getattr(Driver, name)

        def noting(driver, *arguments):
            at = driver.port.generation()
            self.rows.append((driver, name, threading.current_thread(), at))
            if name == "decide" and not driver.port.is_rebalancing():
                self.found.append("no rebalance is running while the leader decides")
            if name == "decide" and self.fails_next:
                self.fails_next = False
                raise TaskAssignmentError("planted")
            return call(driver, *arguments)

        return noting

    def of(self, driver):
        return [(name, thread, at) for d, name, thread, at in self.rows if d is driver]

    def broken(self):
        """Return what does not hold of the calls."""
        found = [*self.found]
        for driver in {id(row[0]): row[0] for row in self.rows}.values():
            rows, threads = self.of(driver), {thread for _, thread, _ in self.of(driver)}
            names = "".join(name[0] for name, _, _ in rows)
            if len(threads) != 1:
                found.append(f"calls come from {len(threads)} threads")
            # A join that the group has overtaken has no answer; another one follows.
            if not re.fullmatch("(jd?t?)*", names):
                found.append(f"calls come in the order {names}")
            if rows[0][2] != -1:
                found.append(f"the first join has generation {rows[0][2]}")
        leaders = [at for _, name, _, at in self.rows if name == "decide"]
        if len(set(leaders)) != len(leaders):
            found.append(f"generations with two leaders: {leaders}")
        return found


def broken(client):
    """Return what does not hold of a client, as sentences."""
    config = BrokerConfig(topics={"words": TASKS})
    with running_broker(config) as broker, Calls().noted() as calls:
        group = MemberGroup(client, broker.bootstrap_servers, tasks=TASKS, strategy="sticky")
        try:
            found = [*_rebalances(group, broker.bootstrap_servers, calls)]
        except TimeoutError as error:  # a loop has ended, or nothing comes
            found = [str(error)]
        finally:
            group.close()
    return [*found, *calls.broken()]


def _rebalances(group, servers, calls):
    group.join("a")
    first = group.members["a"]
    before, port = first.active, first.assignor.driver.port
    moved = group.join("b")
    second = group.members["b"]
    if moved != TASKS // 2 or not first.active < before:
        yield f"{moved} tasks moved for the second member: {before} -> {first.active}"
    ports = [member.assignor.driver.port for member in (first, second)]
    group.until(lambda: not any(each.is_rebalancing() for each in ports))
    if len({each.generation() for each in ports}) != 1 or port.generation() < 0:
        yield f"generations {[each.generation() for each in ports]}"
    if len({each.member_id() for each in ports}) != 2 or "" in {each.member_id() for each in ports}:
        yield f"member ids {[each.member_id() for each in ports]}"
    if sum(member.assignor.driver.member.leads for member in (first, second)) != 1:
        yield "not one member leads"
    if any(each.unheard_s() for each in ports):
        yield "a broker that answers counts as silent"
    yield from _rejoin(group, first)
    calls.fails_next = True
    yield from _rejoin(group, first)
    if calls.fails_next:
        yield "no leader decided about a rejoin"
    yield from _garbage(group, servers)
    yield from _timers(port)
    if moved := group.leave("b"):
        yield f"{moved} tasks moved from the member that stays"


def _rejoin(group, member):
    before, held = member.generation, member.active
    member.assignor.driver.port.request_rejoin()
    group.until(lambda: member.generation > before and group.is_settled())
    if member.active != held:
        yield f"a rejoin moved tasks: {held} -> {member.active}"


def _garbage(group, servers):
    """Join with metadata that cannot be decoded, until the group has an answer, and leave."""
    answers, generations = [], {m: m.generation for m in group.members.values()}
    assignor = SimpleNamespace(metadata=lambda _: b"\xff", on_assignment=answers.append)
    foreign = invented.Consumer(servers, GROUP, assignor)
    foreign.poll()
    foreign.close()
    group.until(lambda: all(m.generation > g for m, g in generations.items()))
    group.until(group.is_settled)
    if answers and invented.Answer.decode(answers[0]).partitions():
        yield f"a member whose metadata cannot be decoded got {answers[0]}"


def _timers(port):
    called, cancelled = threading.Event(), threading.Event()
    port.start_timer(0.2, cancelled.set).cancel()
    port.start_timer(0.2, called.set)
    if not called.wait(LIMIT_S):
        yield "a timer did not call"
    time.sleep(0.2)
    if cancelled.is_set():
        yield "a cancelled timer has called"
