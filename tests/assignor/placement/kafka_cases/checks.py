"""The assertions of Kafka's tests about a placement, as sentences that are checked.

`active 1 = 0_0 0_1` (exactly), `has`, `lacks`, `# 2` (so many), `#>= 2`, `#<= 2`, `# 0 1` (one of);
`active`, `standby` or `assigned` (both), of one client or of `each`. The others:

- `followup yes`, `followup no`
- `valid STANDBYS WARMUPS`: every task runs once, has so many standbys as far as clients allow, and
  so many tasks have one copy more
- `level active`, `level stateful`, `level all`: loads per thread differ by 1 at most
- `level subtopologies N`: of each subtopology, actives per client differ by N at most
- `skewed`: some subtopology is not level
- `holders 0_0 in 5,9 6,8`: the standbys of the task are on one of these sets of clients
- `holders 0_0 among 5,9,6`: they are on clients of this list
- `standbys 12`: so many in all; `replicas 0_0-3`: one standby of each of these, no other
- `different 1 2 3`: no two of these clients have the same tasks
- `spread 3`: so many clients or more have a standby
- `both 3 4`: two clients have 3 and 4 active tasks, in either order
- `former 1 or 2`: client 1 or client 2 runs exactly the tasks that it ran before
- `sticky`: every client runs the tasks that it ran before
- `crossings active 2`, `crossings standby 2`: at most so many source (changelog) partitions have no
  replica in the rack of the task's client
"""

from collections import Counter

from tests.assignor.placement.kafka_cases.fixtures import tasks_of


def failing(outcome, sentences):
    """The sentences that do not hold, in order."""
    return [sentence for sentence in sentences if not holds(outcome, sentence)]


def holds(outcome, sentence):
    """Whether a sentence is true of a placement."""
    kind, *words = sentence.split()
    if kind in {"active", "standby", "assigned"}:
        return _clients_hold(outcome, kind, *words)
    return _CHECKS[kind](outcome, *words)


def _held(outcome, kind, number):
    if kind == "assigned":
        return outcome.active[number] | outcome.standby[number]
    return {"active": outcome.active, "standby": outcome.standby}[kind][number]


def _clients_hold(outcome, kind, who, operation, *words):
    numbers = list(outcome.active) if who == "each" else [int(who)]
    return all(_compare(_held(outcome, kind, n), operation, words) for n in numbers)


def _compare(tasks, operation, words):
    if operation == "#":
        return len(tasks) in map(int, words)
    if operation == "#>=":
        return len(tasks) >= int(words[0])
    if operation == "#<=":
        return len(tasks) <= int(words[0])
    given = set(tasks_of(" ".join(words)))
    return {"=": tasks == given, "has": given <= tasks, "lacks": not given & tasks}[operation]


def _followup(outcome, word):
    return outcome.followup is (word == "yes")


def _valid(outcome, standbys, warmups):
    runs = Counter(task for held in outcome.active.values() for task in held)
    copies = Counter(task for held in outcome.standby.values() for task in held)
    stateful, left = outcome.stateful_tasks(), int(warmups)
    if any(held & outcome.standby[number] for number, held in outcome.active.items()):
        return False
    for task in outcome.state.tasks:
        wanted = int(standbys) if task in stateful else 0
        expected = min(len(outcome.active), 1 + wanted)
        actual = runs[task] + copies[task]
        if runs[task] != 1 or actual not in {expected, expected + 1}:
            return False
        left -= actual - expected
    return left >= 0 and set(copies) <= stateful


def _level(outcome, what, most=1):
    if what == "subtopologies":
        return not _skewed_subtopologies(outcome, int(most))
    loads, threads = [], outcome.threads()
    for number, held in outcome.active.items():
        tasks = held if what == "active" else held | outcome.standby[number]
        if what == "stateful":
            tasks = tasks & outcome.stateful_tasks()
        loads.append(len(tasks) / threads[number])
    return max(loads) - min(loads) <= 1


def _skewed_subtopologies(outcome, most):
    counts = [Counter(t.subtopology for t in held) for held in outcome.active.values()]
    return {
        sub
        for sub in {task.subtopology for task in outcome.state.tasks}
        if max(c[sub] for c in counts) - min(c[sub] for c in counts) > most
    }


def _skewed(outcome):
    return bool(_skewed_subtopologies(outcome, 1))


def _holders(outcome, task, how, *sets):
    (wanted,) = tasks_of(task)
    found = {number for number, held in outcome.standby.items() if wanted in held}
    choices = [set(map(int, part.split(","))) for part in sets]
    return found in choices if how == "in" else found <= choices[0]


def _standbys(outcome, count):
    return sum(map(len, outcome.standby.values())) == int(count)


def _different(outcome, *numbers):
    held = [frozenset(_held(outcome, "assigned", int(n))) for n in numbers]
    return len(set(held)) == len(held)


def _spread(outcome, least):
    return sum(1 for held in outcome.standby.values() if held) >= int(least)


def _both(outcome, *counts):
    return sorted(map(len, outcome.active.values())) == sorted(map(int, counts))


def _former(outcome):
    """Client number -> tasks that it ran."""
    return {
        number: {t for t, o in zip(outcome.state.tasks, outcome.state.owner, strict=True) if o == c}
        for c, number in enumerate(int(name[-12:], 16) for name in outcome.state.clients)
    }


def _keeps_one(outcome, first, _or, other):
    former = _former(outcome)
    return any(outcome.active[int(n)] == former[int(n)] for n in (first, other))


def _sticky(outcome):
    return outcome.active == _former(outcome)


def _each_once(outcome, *words):
    found = Counter(task for held in outcome.standby.values() for task in held)
    return found == Counter(tasks_of(" ".join(words)))


def _crossings(outcome, kind, most):
    state = outcome.state
    table = {"active": state.partition_racks, "standby": state.changelog_racks}[kind]
    racks = dict(zip(outcome.active, state.racks, strict=True))
    parts = {task: table[index] for index, task in enumerate(state.tasks)}
    crossed = [
        part
        for number in outcome.active
        for task in _held(outcome, kind, number)
        for part in parts[task]
        if racks[number] not in part
    ]
    return len(crossed) <= int(most)


_CHECKS = {
    "crossings": _crossings,
    "followup": _followup,
    "valid": _valid,
    "level": _level,
    "skewed": _skewed,
    "holders": _holders,
    "standbys": _standbys,
    "replicas": _each_once,
    "different": _different,
    "spread": _spread,
    "both": _both,
    "former": _keeps_one,
    "sticky": _sticky,
}
