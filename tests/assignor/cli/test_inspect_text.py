"""The text output, character by character, in narrow and wide terminals."""

import re
from pathlib import Path
from uuid import UUID

import pytest
from rich.console import Console

from assignor.cli.inspect.all_groups import render_groups
from assignor.cli.inspect.text import CLIENTS_SHOWN, render_group
from assignor.inspection.group import inspect_group
from encoding import NativeAssignment, NativeSubscription, TaskId
from tests.assignor.inspection.described_groups import FACTS, captured, group_of, member
from tests.versions import LAST_WITH_11

PAGE = Path(__file__).parents[3] / "docs" / "inspect.md"
T00, T01 = TaskId(0, 0), TaskId(0, 1)


def shown(what, width):
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(what, highlight=False)
    return [line.rstrip() for line in capture.get().splitlines()]


def group(look, width, *, now_ms=0, tasks=False):
    return shown(render_group(look, width=width, now_ms=now_ms, tasks=tasks), width)


def threads():
    """A group: a process with two threads and a warm-up, and a JVM member without tasks."""
    native = NativeSubscription(rack="r1")
    common = {"process": 1, "user_endpoint": "h:1", "native": native, "client_tags": {"zone": "z"}}
    warm = NativeAssignment(warmup_tasks=(T00,), next_version=101)
    return group_of(
        member("a", active=[T00], answer={"native": warm}, **common),
        member(
            "a", thread=2, active=[T01], standby=[T00],
            answer={"native": warm, "next_rebalance_ms": 65_000}, **common,
        ),
        member("b"),
    )  # fmt: skip


def test_the_page_shows_what_the_command_prints():
    described, facts = captured("pinned-2.3.1")
    lines = group(inspect_group(described, facts), 100)
    text = "\n".join(lines).replace(described.group_id, "word-count")
    # The page has the range of the day on which it was written.
    page = re.sub(r"3\.4\.0-[\d.]+", f"3.4.0-{LAST_WITH_11}", PAGE.read_text(encoding="utf-8"))
    assert f"```text\n{text}\n```" in page


@pytest.mark.parametrize("width", [60, 80, 100, 160])
@pytest.mark.parametrize("name", ["pinned-2.3.1", "natives", "old-2.3.1"])
def test_nothing_is_wider_than_the_terminal(width, name):
    look = inspect_group(*captured(name))
    assert max(len(line) for line in group(look, width, tasks=True)) <= width


HEAD = [
    "group app with 3 members, Stable; 2 clients, 2 tasks, 1 standby task",
    "version  11, the highest of the JVM members; native members add a trailer",
    "leader   one of a StreamThread-1, a StreamThread-2 (assignments have native",
    "         content, which only native leaders write)",
    "next     a probing rebalance at 00:01:05 UTC (in 1 m 1 s), while copies warm up",
    "lag      10 records",
]
FINDINGS = [
    "",
    "! task 0_0 has its standby on the process that runs it",
    "! b has no application.server: its tasks cannot be queried",
]


def test_threads_have_rows_of_their_own_and_a_narrow_terminal_leaves_out_places():
    lines = group(inspect_group(threads(), FACTS), 80, now_ms=4_000)
    assert lines[:6] == HEAD
    assert lines[6].startswith("record   about 1,")
    assert lines[7:] == [
        "",
        "client      wrote      got       release      active  standby  warm  lag  behind",
        "a                                                  2        0     1   10",
        "  Thread-1  11/11+101  11 → 101  native v101       1        0     1",
        "  Thread-2  11/11+101  11 → 101  native v101       1        0     1",
        f"b           11/11      11        3.4.0-{LAST_WITH_11}       0        0     ?    ?",
        *FINDINGS,
    ]


def test_a_wide_terminal_shows_where_clients_are_and_tasks_where_asked_for():
    lines = group(inspect_group(threads(), FACTS), 130, now_ms=4_000, tasks=True)
    assert [line[82:] for line in lines[7:12]] == [
        "rack  tags    endpoint  host",
        "r1    zone=z  h:1       10.0.0.1",
        "r1    zone=z  h:1       10.0.0.1",
        "r1    zone=z  h:1       10.0.0.1",
        "                        10.0.0.1",
    ]
    assert lines[12:] == [
        "",
        "task  reads  runs on  copies on  lag  state",
        "0_0   in-0   a        a           10",
        "0_1   in-1   a                     0",
        *FINDINGS,
    ]


@pytest.mark.parametrize(
    ("now_ms", "text"),
    [
        (0, "(in 1 m 5 s)"),
        (65_000, "(in 0 m 0 s)"),
        (70_000, "(5 s ago)"),
    ],
)
def test_the_next_rebalance_is_reported_with_the_time_left(now_ms, text):
    look = inspect_group(threads(), FACTS)
    assert any(text in line for line in group(look, 100, now_ms=now_ms))


def test_a_rebalance_at_once_waits_for_old_owners():
    look = inspect_group(group_of(member("a", active=[T00], answer={"next_rebalance_ms": 0})))
    lines = group(look, 100)
    assert (
        "next     an immediate rebalance, to assign tasks that their old owners have given up"
        in lines
    )
    assert "lag      not known (no committed offsets, or not authorized to read them)" in lines
    assert any("%; assumes the default limit)" in line for line in lines)


def test_long_client_ids_are_cut_to_a_unique_part_before_releases_are():
    names = [str(UUID(int=number * 7**40)) for number in (1, 2)]
    look = inspect_group(
        group_of(
            *(
                member(name, process=number, thread=thread, **wrote)
                for number, (name, wrote) in enumerate(
                    zip(names, ({}, {"used": 2, "supported": -1, "consumer": 0}), strict=True)
                )
                for thread in (1, 2)
            )
        ),
        FACTS,
    )
    lines = group(look, 80)
    first = lines.index(next(line for line in lines if line.startswith("client ")))
    assert [line[:40].rstrip() for line in lines[first : first + 9]] == [
        "client      wrote  got  release",
        "000139e8",
        f"  Thread-1  11/11  11   3.4.0-{LAST_WITH_11}",
        f"  Thread-2  11/11  11   3.4.0-{LAST_WITH_11}",
        "000273d0",
        "  Thread-1  2      2    0.10.1.0-1.1.1,",
        "                        2.0.0-2.3.1 pinn",
        "  Thread-2  2      2    0.10.1.0-1.1.1,",
        "                        2.0.0-2.3.1 pinn",
    ]
    assert any(names[1] in line for line in lines)  # whole in what there is to do


def test_of_very_many_clients_those_that_hold_the_version_are_shown():
    many = [member(f"m{number:03}", process=number) for number in range(1, 121)]
    low = member("z-low", process=999, used=4, supported=4, consumer=0)
    lines = group(inspect_group(group_of(*many, low), FACTS), 80)
    assert sum(line.startswith("m") for line in lines) == CLIENTS_SHOWN - 1
    assert any(line.startswith("z-low") for line in lines)
    assert "21 more are not shown; --format json lists all" in lines
    few = group(inspect_group(group_of(*many[:3]), FACTS), 80)
    assert not any("not shown; --format" in line for line in few)


def test_all_groups_are_one_row_each():
    looks = [
        inspect_group(threads(), FACTS),
        inspect_group(*captured("pinned-2.3.1")),
        inspect_group(group_of(state="Empty", protocol_name="")),
        inspect_group(group_of(member("x"), protocol_name="range"), FACTS),
        inspect_group(group_of(group_type="streams", protocol_name="")),
    ]
    assert shown(render_groups(looks, width=80), 80) == [
        "group                state   assignor  members  lag  version  findings",
        "app                  Stable  Streams         3   10  11       2 findings",
        "word-count-02a54210  Stable  Streams         4   13  2 of 11  limited by old",
        "app                  Empty   -               0    ?",
        "app                  Stable  range           1   10",
        "app                  Stable  KIP-1071        ?    ?",
    ]


def test_all_groups_have_their_releases_on_a_wide_terminal_and_in_pipes():
    looks = [inspect_group(threads(), FACTS)]
    for width in (None, 120):
        head, row = shown(render_groups(looks, width=width), 200)
        assert row[head.index("release") :].startswith(f"3.4.0-{LAST_WITH_11}, native v101  2 f")


def test_a_narrow_terminal_has_every_value_of_a_group():
    lines = shown(render_groups([inspect_group(threads(), FACTS)], width=40), 40)
    assert [line.rstrip() for line in lines] == [
        "group  about it",
        "app    Stable, Streams, members 3, lag",
        "       10, version 11, 2 findings",
    ]


def test_a_stock_group_lists_members_and_topics():
    lines = group(inspect_group(group_of(member("x"), protocol_name="range"), FACTS), 80)
    assert lines[-2:] == [
        "client  member                             topics  partitions",
        "x       app-x-StreamThread-1-consumer-120  in               0",
    ]
    wide = group(inspect_group(group_of(member("x"), protocol_name="range"), FACTS), 120)
    assert wide[-1].endswith("10.0.0.1")
    assert group(inspect_group(group_of(state="Empty", protocol_name="")), 80) == [
        "group app has no members now; its state is Empty"
    ]
