"""Foreign text in the output of commands: printable, on one line, without markup."""

import json
import os
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from uuid import UUID

import pytest
from click.testing import CliRunner
from rich.console import Console

from assignor.cli import main
from assignor.cli.inspect import command
from assignor.cli.inspect.all_groups import render_groups
from assignor.cli.inspect.text import render_group
from assignor.cli.toolkit import say, warn
from assignor.cli.toolkit.text import paragraph, print_line, print_table
from assignor.inspection import inspect_group
from encoding import Subscription, TaskId, encode_subscription
from tests.assignor.inspection.described_groups import FACTS, group_of, member
from tests.assignor.problems.small_groups import JOIN

T00, T01 = TaskId(0, 0), TaskId(0, 1)
FORGED = "x\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\n2026-01-01 ERROR all is lost\r[red]y[/foo]"
ESCAPED = r"x\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\n2026-01-01 ERROR all is lost\r[red]y[/foo]"


def lines_of(what, width=160):
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(what, highlight=False)
    return [line.rstrip() for line in capture.get().split("\n")]


def rendered(*members, width=160, tasks=True, **changes):
    look = inspect_group(group_of(*members, **changes), FACTS)
    return lines_of(render_group(look, width=width, now_ms=0, tasks=tasks), width)


def stock(client_id, **fields):
    return replace(member("s"), client_id=client_id, **fields)


def test_an_endpoint_with_brackets_is_shown_as_it_is():
    lines = rendered(member("a", active=[T00], user_endpoint="[fe80::1]:8080"))
    assert any("[fe80::1]:8080" in line for line in lines)


@pytest.mark.parametrize("protocol", ["stream", "range"])
def test_markup_in_a_client_id_is_text(protocol):
    hostile = stock("x[/foo]", instance_id="[red]i[/]")
    lines = rendered(hostile, member("honest", active=[T00]), protocol_name=protocol)
    assert any(line.startswith("x[/foo] ") for line in lines)
    assert any(line.split()[0] == "honest" for line in lines if line)


@pytest.mark.parametrize("protocol", ["stream", "range"])
@pytest.mark.parametrize("width", [60, 100, 160])
def test_no_field_of_a_member_forges_a_line_or_reaches_the_terminal(protocol, width):
    hostile = replace(
        member(
            "h",
            active=[T01],
            user_endpoint=f"{FORGED}:1",
            client_tags={FORGED: FORGED},
            rack=FORGED,
            inputs=FORGED,
            topics=(FORGED,),
        ),
        member_id=FORGED,
        client_id=FORGED,
        client_host=FORGED,
        instance_id=FORGED,
    )
    lines = rendered(
        hostile,
        member("honest", active=[T00], user_endpoint="h:1"),
        protocol_name=protocol,
        width=width,
    )
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith(("2026", "ERROR", "all is lost")) for line in lines)
    assert any(line.split()[0] == "honest" for line in lines if line)


@pytest.mark.parametrize("state", ["Stable", "Empty", FORGED])
def test_a_group_is_one_row_whatever_its_name(state):
    look = inspect_group(group_of(group_id=FORGED, state=state, protocol_type=FORGED))
    lines = lines_of(render_groups([look]), 400)
    assert len(lines) == 3
    assert lines[1].startswith(ESCAPED)
    assert lines[1].isprintable()


@pytest.mark.parametrize("at_ms", [-(2**63), -1, 2**60, 2**63 - 2])
def test_a_rebalance_at_a_time_that_no_clock_shows_is_a_number(at_ms):
    lines = rendered(member("a", active=[T00], answer={"next_rebalance_ms": at_ms}))
    (next_line,) = [line for line in lines if line.startswith("next")]
    assert "a probing rebalance at" in next_line
    assert str(at_ms) in next_line or at_ms == -1


@pytest.mark.parametrize("port", ["9" * 5_000, "\u0663", "-1", ""])
def test_a_port_that_is_none_is_a_finding(port):
    lines = rendered(member("a", active=[T00], user_endpoint=f"h:{port}"))
    assert any("application.server" in line for line in lines)


def test_a_long_name_is_cut_and_shows_its_length():
    group = group_of(stock("y" * 30_000), member("honest"), protocol_name="range")
    look = inspect_group(group, FACTS)
    for is_cut, mark in ((True, "yyy\N{HORIZONTAL ELLIPSIS} "), (False, "(30,000 characters)")):
        lines = lines_of(render_group(look, width=600, now_ms=0, tasks=True, cut=is_cut), 600)
        assert any(mark in line for line in lines)
        assert any(line.split()[0] == "honest" for line in lines if line)


# Looks that fail


class Unlucky:
    """A group whose attributes raise, except its name, like a defect in the inspection."""

    described = group_of(group_id="unlucky\n[red]")

    def __getattr__(self, name):
        raise ZeroDivisionError("by\nnothing")


@contextmanager
def no_broker(target):
    yield None


def run(monkeypatch, looks, *words):
    monkeypatch.setattr(command, "target_of", lambda *_: None)
    monkeypatch.setattr(command, "connected", no_broker)
    admin = SimpleNamespace(
        look_at_all_groups=lambda _: iter(looks), look_at_group=lambda *_: looks[0]
    )
    monkeypatch.setattr("assignor.adapters.admin.look_at_all_groups", admin.look_at_all_groups)
    monkeypatch.setattr("assignor.adapters.admin.look_at_group", admin.look_at_group)
    return CliRunner().invoke(main, ["inspect", *map(str, words)])


@pytest.fixture
def looks():
    honest = inspect_group(group_of(member("honest", active=[T00])), FACTS)
    return [honest, Unlucky(), replace(honest, described=group_of(group_id="last"))]


def test_of_all_groups_one_that_cannot_be_shown_costs_its_own_row(monkeypatch, looks):
    done = run(monkeypatch, looks, "--all")
    assert done.exit_code == 0, done.output
    rows = done.stdout.splitlines()
    assert [row.split()[0] for row in rows[:4]] == ["group", "app", r"unlucky\n[red]", "last"]
    assert r"cannot be shown: ZeroDivisionError: by\nnothing" in rows[2]


def test_of_all_groups_one_that_cannot_be_shown_costs_its_own_document(monkeypatch, looks):
    done = run(monkeypatch, looks, "--all", "--format", "json")
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [document["group"] for document in found] == ["app", "unlucky\n[red]", "last"]
    assert found[1]["findings"][0]["kind"] == "failed"
    assert "ZeroDivisionError" in found[1]["summary"]


def test_a_single_group_that_cannot_be_shown_ends_with_a_sentence(monkeypatch, looks):
    for more in ((), ("--format", "json")):
        done = run(monkeypatch, looks[1:2], "--group", "unlucky", *more)
        assert done.exit_code == 1
        assert done.stderr.count("\n") == 1
        assert "cannot be shown: ZeroDivisionError" in done.stderr


def test_a_group_that_cannot_be_saved_is_left_out_on_one_line(monkeypatch, looks, tmp_path):
    done = run(monkeypatch, looks, "--all", "--save", tmp_path / "groups.jsonl")
    assert done.exit_code == 0, done.output
    assert r"warning: group unlucky\n[red] is not saved: ZeroDivisionError" in done.stderr
    assert len((tmp_path / "groups.jsonl").read_text(encoding="utf-8").splitlines()) == 2


# What all commands print with


@pytest.mark.parametrize(
    "print_text",
    [
        lambda text: say("assignor", text),
        warn,
        paragraph,
        print_line,
        lambda text: print_table(["column"], [[text]]),
    ],
)
def test_whatever_is_printed_is_printable(capsys, print_text):
    print_text(FORGED)
    out, err = capsys.readouterr()
    lines = (out + err).splitlines()
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("2026") for line in lines)
    assert r"\x1b]0;owned\x07" in out + err


# Problem files and blobs

NAMED = {
    **JOIN,
    "name": FORGED,
    "config": {
        "rack.aware.assignment.strategy": "min_traffic",
        "rack.aware.assignment.tags": ["z"],
    },
    "topics": {FORGED: {"partitions": 4, "racks": {"0": [FORGED]}}},
    "subtopologies": {"0": {"sources": [FORGED], "changelogs": [f"{FORGED}-changelog"]}},
    "clients": {
        f"{FORGED}{number}": client
        | {"rack": FORGED, "tags": {"z": FORGED}, "endpoint": f"{FORGED}:1"}
        for number, client in enumerate(JOIN["clients"].values())
    },
}
WRONG = NAMED | {"subtopologies": {FORGED: {"sources": [FORGED]}}}
BLOB = encode_subscription(
    Subscription(version=11, latest_supported_version=11, process_id=UUID(int=1),
                 user_endpoint=FORGED, client_tags={FORGED: FORGED})
)  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "--problem", "-"),
        ("explain", "--problem", "-", "--task", "0_0"),
        ("explain", "--problem", "-", "--task", FORGED),
        ("explain", "--problem", "-", "--name", FORGED + "2"),
        ("explain", "--problem", "-", "--config", f"{FORGED}=1"),
        ("diff", "--problem", "-"),
        ("diff", "--problem", "-", "--tasks"),
        ("assign", "--problem", "-", "--format", "text"),
        ("size", "--problem", "-"),
        ("negotiate", "--members", "a\x1b[2J\u202e:10/11,11/11"),
        ("negotiate", "--members", FORGED),
        ("decode", "--kind", "subscription", "--hex", BLOB.hex()),
        ("decode", "--kind", "subscription", "--hex", FORGED),
        ("features", "describe", "--directory", f"/none/{FORGED[1:]}"),
        ("storage", "describe", "--directory", f"/none/{FORGED[1:]}"),
        (FORGED,),
        ("explain", f"--{FORGED}"),
    ],
)
@pytest.mark.parametrize("problem", [NAMED, WRONG, {FORGED: FORGED}], ids=["named", "wrong", "odd"])
def test_no_command_lets_foreign_text_out_as_it_is(words, problem):
    given = [os.fsdecode(word.encode()) for word in words]  # as a process gets them, in any locale
    done = CliRunner().invoke(main, given, input=json.dumps(problem) + "\n")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    lines = (done.stdout + done.stderr).split("\n")
    assert len(lines) > 1
    for line in lines:
        assert line.isprintable(), line
        assert not line.startswith("2026")
