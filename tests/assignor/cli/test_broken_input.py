"""`assignor assign`, also with `--simulate`: broken strategies and files are one sentence."""

import json

import pytest
from click.testing import CliRunner

from assignor.cli.assign.command import assign
from tests.assignor.broken_strategies import ANSWERING, RAISING

GROUP = {
    "name": "orders",
    "topics": {"t": {"partitions": 4}},
    "subtopologies": {"0": {"sources": ["t"], "changelogs": ["c"]}},
    "clients": {"a": {"active": ["0_0", "0_1"]}, "b": {}},
}
STRATEGIES = {
    f"tests.assignor.broken_strategies:{name}": sentence
    for name, sentence in (RAISING | ANSWERING).items()
}
NAMES = {
    ":x": "write MODULE:CALLABLE",
    "no.such:x": "No module named 'no'",
    "tests.assignor.broken_module:x": "cannot be imported, SystemExit: 0",
    "stiky": "did you mean sticky?",
}
WIDE = {"0": {"sources": ["t"]}, "1": {"sources": ["t"]}}
FILES = {
    "weight of 1e400": (GROUP | {"weights": {"0_0": 10**400}}, "weights of 0_0 is 1000"),
    "weight that is infinite": (
        GROUP | {"weights": {"0_0": float("inf")}},
        "weights of 0_0 is inf",
    ),
    "replicas beyond Java's": (
        GROUP | {"config": {"num.standby.replicas": 2**63}},
        "num.standby.replicas = 9223372036854775808 is not allowed",
    ),
    "racks of a partition of 5,000 digits": (
        GROUP | {"topics": {"t": {"partitions": 4, "racks": {"1" * 5000: ["r"]}}}},
        "racks of topic t name partition '1111",
    ),
    "lists in a leave": (
        GROUP | {"events": [{"type": "leave", "clients": [[[1]]]}]},
        "event 1, leave: clients has entry [[1]]",
    ),
    "an unknown event": (GROUP | {"events": [{"type": "nap"}]}, "event 'nap' is unknown"),
    "a join that is no client": (
        GROUP | {"events": [{"type": "join", "clients": {"c": {"threads": "many"}}}]},
        "client c has threads 'many'",
    ),
    "a leave after a leave": (
        GROUP | {"events": [{"type": "leave", "clients": ["b"]}] * 2},
        "event 2, leave: client b cannot leave: it is not in the group",
    ),
    "a bounce of the only client": (
        GROUP | {"clients": {"a": {}}, "events": [{"type": "bounce", "clients": ["a"]}]},
        "event 1, bounce: all clients leave at once",
    ),
    "an unknown client that is stuck": (
        GROUP | {"stuck": {"ghost": 7}},
        "stuck client ghost does not exist",
    ),
    "a number of 5,000 digits": (
        json.dumps(GROUP)[:-1] + f', "note": {"1" * 5000}}}',
        "broken JSON, more digits",
    ),
    "subtopologies that are null": (GROUP | {"subtopologies": None}, "subtopologies is null"),
    "a changelog that is no text": (
        GROUP | {"subtopologies": {"0": {"sources": ["t"], "changelogs": [None]}}},
        "subtopology 0: changelogs has entry None",
    ),
    "a subtopology twice": (
        GROUP | {"subtopologies": {"0": {"sources": ["t"]}, "00": {"sources": ["t"]}}},
        "subtopology '00' is not a number",
    ),
    "too many tasks": (
        GROUP | {"topics": {"t": {"partitions": 600_000}}, "subtopologies": WIDE},
        "subtopology 1 has 600000 tasks, the ones before it have 600000; a problem has at most",
    ),
    "a name of two lines": (
        GROUP | {"name": "x\nassignor: all is well", "clients": {}},
        "no clients",
    ),
}
every_command = pytest.mark.parametrize("more", [(), ("--simulate",)], ids=["once", "simulate"])
every_form = pytest.mark.parametrize("form", ["json", "text"])


def call(*arguments, line=GROUP):
    text = line if isinstance(line, str) else json.dumps(line)
    return CliRunner().invoke(assign, ["--problem", "-", *arguments], input=f"{text}\n")


def one_sentence(result):
    assert result.exit_code == 2, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit)
    [sentence] = result.stderr.splitlines()
    assert sentence.isprintable()
    assert len(sentence) < 700
    return sentence


@every_command
@every_form
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_broken_strategy_is_one_sentence(strategy, more, form):
    result = call("--strategy", strategy, "--format", form, *more)
    assert STRATEGIES[strategy] in one_sentence(result)
    if form == "json":
        assert json.loads(result.stdout)["error"]


@every_command
@pytest.mark.parametrize("strategy", NAMES)
def test_a_strategy_that_cannot_be_found_is_one_sentence(strategy, more):
    result = call("--strategy", strategy, *more)
    assert NAMES[strategy] in one_sentence(result)


@every_command
@pytest.mark.parametrize("what", FILES)
def test_a_broken_file_is_one_sentence(what, more):
    line, sentence = FILES[what]
    assert sentence in one_sentence(call("--format", "json", *more, line=line))


@pytest.mark.slow
def test_the_groups_beside_a_broken_one_are_answered():
    invalid = [json.dumps(line) for line, _ in FILES.values() if not isinstance(line, str)]
    valid = json.dumps(GROUP | {"name": "good"})
    result = call("--format", "json", line="\n".join([valid, *invalid, valid]))
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer["name"] for answer in answers if "clients" in answer] == ["good", "good"]
    assert len(answers) == len(invalid) + 2
    messages = result.stderr.splitlines()
    assert len(messages) == 6
    assert messages[-1] == f"assignor: and {len(invalid) - 5} more lines with errors."
