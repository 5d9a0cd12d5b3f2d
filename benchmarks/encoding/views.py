"""Size and time of the routing view, compared with Kafka's host maps of version 11.

Run with `make bench` or `pytest benchmarks/encoding/views.py --benchmark-only -s`. Bytes are
compared with a v11 answer of the same group. The size depends on host names: those of a stateful
set have a counter (`streams-00042.prod.example.net`); random names are the worst case, shown
without a goal.
"""

import random
import time
import timeit
from functools import cache
from types import SimpleNamespace
from uuid import UUID

import pytest

from assignor.cli import make_problem
from assignor.cli.size.encodings import native_sizes
from assignor.cli.size.group import read_group
from benchmarks.rows import at_most, say, shown
from encoding import (
    Assignment,
    NativeAssignment,
    NativeSubscription,
    Subscription,
    TaskOffsetSums,
    apply_delta,
    build_view,
    decode_subscription,
    decode_view,
    encode_assignment,
    encode_subscription,
    encode_view,
    encode_view_forms,
    view_reference,
)

PART = "encoding"
FULL_RATIO = 0.2
DELTA_RATIO = 0.005
SPLICE_MS = 0.1
HUGE_SECONDS = 1.0
LINEAR = 1.1  # goal: bytes a member of a group four times as large
ALARM = 4  # fail above so many times the goal: slow machines must pass, loops in Python must not


@cache
def group_of(clients, tasks):
    """A steady group, its view, the view after one join, and a member's answers without a view."""
    group = read_group(make_problem(clients=clients, tasks=tasks, standbys=1, endpoints=True))
    after = group.with_one_joined()
    old = group.view(1)
    bare = NativeAssignment(sizes=group.sizes, partition_counts=group.partition_counts)
    return SimpleNamespace(
        group=group,
        members=list(group.members()),
        old=old,
        new=after.view(2, previous=old),
        bare=bare,
    )


def kafka_bytes(example):
    """Bytes of a member's v11 answer."""
    group, member = example.group, example.members[0]
    hosts, standby_hosts = group.host_maps()
    return len(
        encode_assignment(
            Assignment(
                version=11,
                commonly_supported_version=11,
                active_tasks=tuple(group.tasks[task] for task in member.active),
                standby_tasks={group.tasks[t]: group.partitions[t] for t in member.standby},
                partitions_by_host=hosts,
                standby_partitions_by_host=standby_hosts,
            )
        )
    )


def answers(example, **view):
    """The answers of all members as values, with the view in one form."""
    tasks = example.group.tasks
    native = NativeAssignment(
        sizes=example.bare.sizes, partition_counts=example.bare.partition_counts, **view
    )
    return [
        Assignment(
            version=101,
            commonly_supported_version=101,
            active_tasks=tuple(tasks[task] for task in member.active),
            standby_tasks={tasks[task]: () for task in member.standby},
            native=native,
        )
        for member in example.members
    ]


def encode_all(values):
    return sum(len(encode_assignment(value)) for value in values)


def best_ms(call, *arguments, number=3, repeat=5):
    return min(timeit.repeat(lambda: call(*arguments), number=number, repeat=repeat)) / number * 1e3


def with_random_hosts(view):
    """The same view with random host names of 30 characters."""
    rng = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    names = sorted({"".join(rng.choices(letters, k=30)) for _ in view.hosts})
    hosts = [host._replace(host=name) for host, name in zip(view.hosts, names, strict=True)]
    owners = {host: (view.active == n).nonzero()[0].tolist() for n, host in enumerate(hosts)}
    copies = {host: (view.standbys[0] == n).nonzero()[0].tolist() for n, host in enumerate(hosts)}
    return build_view(epoch=1, sizes=view.sizes, active=owners, standby=copies)


def show(title, rows):
    """Report the rows (name, figure, goal or None, unit) of a group."""
    print(f"\n{title}")
    for name, found, goal, unit in rows:
        if goal is None:
            say(PART, name, f"{shown(found)} {unit}")
        else:
            at_most(PART, f"{name}, {title}", found, goal, unit)


def test_ratios_at_1000_clients_and_10000_tasks(benchmark):
    example = group_of(1_000, 10_000)
    forms = encode_view_forms(example.new, older=[example.old])
    delta = forms.delta_by_held[view_reference(example.old)]
    kafka = kafka_bytes(example)
    full = encode_view(example.old)
    chance = encode_view(with_random_hosts(example.old))
    spliced = answers(example, view_full=full)
    splice = best_ms(encode_all, spliced) / len(spliced)
    rows = [
        ("full view over v11 member", len(full) / kafka, FULL_RATIO, "x"),
        ("  with random names of hosts", len(chance) / kafka, None, "x"),
        ("delta after one join over v11 member", len(delta) / kafka, DELTA_RATIO, "x"),
        ("splice a full view into an answer", splice, SPLICE_MS, "ms"),
        ("  encode the view once", best_ms(encode_view, example.old), None, "ms"),
        ("  decode it", best_ms(decode_view, full), None, "ms"),
        ("  apply the delta", best_ms(apply_delta, example.old, delta), None, "ms"),
        ("  v11 member", kafka, None, "bytes"),
        ("  full view", len(full), None, "bytes"),
        ("  delta after one join", len(delta), None, "bytes"),
    ]
    show("1,000 x 10,000", rows)
    benchmark(encode_view, example.old)
    assert len(full) <= FULL_RATIO * kafka
    assert len(delta) <= DELTA_RATIO * kafka
    assert splice <= ALARM * SPLICE_MS


def subscriptions(example):
    """Subscription blobs of all members."""
    group = example.group
    return [
        encode_subscription(
            Subscription(
                version=101,
                latest_supported_version=101,
                process_id=UUID(int=number + 1),
                user_endpoint=f"streams-{number:05}.prod.example.net:8080",
                task_offset_sums=TaskOffsetSums.from_mapping(
                    {group.tasks[task]: -2 for task in member.active}
                    | {group.tasks[task]: 100_003 * task for task in member.standby}
                ),
                native=NativeSubscription(sizes=group.sizes),
            )
        )
        for number, member in enumerate(example.members)
    ]


def cpu_seconds(call, argument):
    """CPU seconds of a call, the best of three."""
    timer = time.process_time
    return min(timeit.repeat(lambda: call(argument), number=1, repeat=3, timer=timer))


def test_all_metadata_of_10000_clients_and_100000_tasks(benchmark):
    example = group_of(10_000, 100_000)
    forms = encode_view_forms(example.new, older=[example.old])
    delta = forms.delta_by_held[view_reference(example.old)]
    blobs = subscriptions(example)
    spent = cpu_seconds(lambda all_: [decode_subscription(data) for data in all_], blobs)
    rows = [("all subscriptions in, CPU", spent, HUGE_SECONDS, "s")]
    for name, view in (
        ("with a delta", {"view_delta": delta}),
        ("with a reference", {"view_reference": forms.reference}),
    ):
        spent = cpu_seconds(encode_all, answers(example, **view))
        rows.append((f"all answers {name}, CPU", spent, HUGE_SECONDS, "s"))
    full = best_ms(encode_all, answers(example, view_full=forms.full)[:500], number=1) / 500
    rows += [
        ("  splice a full view into an answer", full, None, "ms"),
        ("  encode it in all forms once", best_ms(forms_once, example, number=1), None, "ms"),
        ("  full view", len(forms.full), None, "bytes"),
        ("  delta after one join", len(delta), None, "bytes"),
    ]
    show("10,000 x 100,000", rows)
    benchmark.pedantic(forms_once, args=(example,), rounds=3)
    assert all(found <= ALARM * goal for _, found, goal, _ in rows if goal is not None)


def test_bytes_of_a_group_grow_as_its_members_do(benchmark):
    """Bytes per member must be alike in groups of 500 and 2,000 members, ten tasks each."""
    totals = {}
    for clients in (500, 2_000):
        group = group_of(clients, 10 * clients).group
        members = list(group.members())
        for size in native_sizes(group, members):
            totals.setdefault(size.name, []).append(size.group / len(members))
    print()
    for name in ("native_delta", "native_reference"):
        small, large = totals[name]
        at_most(PART, f"bytes a member, {name}, 2,000 over 500", large / small, LINEAR, "x")
        assert large <= ALARM * small
    benchmark(lambda: None)


def forms_once(example):
    return encode_view_forms(example.new, older=[example.old])


@pytest.mark.parametrize("clients", [10, 100, 1_000])
def test_a_delta_after_one_join(benchmark, clients):
    example = group_of(clients, 10_000)
    data = benchmark(forms_once, example).delta_by_held[view_reference(example.old)]
    assert apply_delta(example.old, data) == example.new
