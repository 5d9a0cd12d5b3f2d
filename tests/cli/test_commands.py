"""The three programs have the same options with the same values, and correct help."""

import json
import re
import shlex
from collections import defaultdict
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from docs.generators.commands import PROGRAMS, all_commands
from encoding import Assignment, TaskId, encode_assignment

ROOT = Path(__file__).resolve().parents[2]
JOIN = ROOT / "tests" / "assignor" / "problems" / "join.jsonl"
ANSWER = encode_assignment(Assignment(version=4, active_tasks=(TaskId(0, 1),))).hex()
QUESTION = json.dumps({"kind": "assignment", "hex": ANSWER}) + "\n"
FIELDS = '{"kind": "assignment", "version": 4, "fields": {"active_tasks": [[0, 1, null]]}}\n'
COMMANDS = all_commands()
LEAVES = [(path, command) for path, command in COMMANDS if not isinstance(command, click.Group)]
OPTIONS = [
    (path, option)
    for path, command in COMMANDS
    for option in command.params
    if isinstance(option, click.Option) and option.name not in {"help", "version"}
]


def named(row):
    return " ".join(row[0])


every_command = pytest.mark.parametrize("row", COMMANDS, ids=named)

# Options of the same name with other values, and the reason.
OTHER_VALUE = {
    ("--bootstrap-server", "rolling-bounce live"): "one broker is enough for a test",
    ("--brokers", "rolling-bounce plan"): "the release of those that exist, not a number",
    ("--broker", "rolling-bounce soak"): "the embedded one has a name there, as its default",
    ("--faults", "spark-assign simulate"): "groups only",
    ("--feature", "assignor features disable"): "what is taken out has no level",
    ("--format", "rolling-bounce matrix"): "pages as well",
    ("--members", "assignor negotiate"): "who they are, since nothing else is known of them",
    ("--out", "assignor sample"): "a file; Spark writes folders",
    ("--out", "rolling-bounce soak"): "a file; Spark writes folders",
    ("--problem", "rolling-bounce plan"): "a saved file, no stream",
    ("--topology", "assignor features downgrade-topology"): "the program to go back to",
    ("--topology", "assignor reset"): "the program itself, which names its topics",
    ("--topology", "rolling-bounce live"): "what the new one changes",
    ("--topology", "rolling-bounce matrix"): "all of them as well",
    ("--topology", "rolling-bounce plan"): "the old one and the new one",
    ("--strategy", "spark-assign group"): "the collapsed job has two of its own",
    ("--tasks", "assignor sample"): "their number; elsewhere, whether they are listed",
}


def value_of(option):
    if option.is_flag:
        return "flag"
    if isinstance(option.type, click.Choice):
        return tuple(option.type.choices)
    return option.metavar or type(option.type).__name__


def test_an_option_of_one_name_takes_the_same_everywhere():
    found = defaultdict(lambda: defaultdict(list))
    for path, option in OPTIONS:
        if (option.opts[0], " ".join(path)) not in OTHER_VALUE:
            found[option.opts[0]][value_of(option)].append(" ".join(path))
    assert {name: dict(ways) for name, ways in found.items() if len(ways) > 1} == {}


def test_every_option_has_help():
    assert [
        f"{' '.join(path)} {option.opts[0]}" for path, option in OPTIONS if not option.help
    ] == []


def test_a_default_is_shown_unless_it_is_nothing():
    hidden = [
        f"{' '.join(path)} {option.opts[0]}"
        for path, option in OPTIONS
        if isinstance(option.default, str | int | float)
        and not option.is_flag
        and option.default != ""
        and not option.show_default
    ]
    assert hidden == []


@pytest.mark.parametrize("row", LEAVES, ids=named)
def test_every_command_has_output_for_people_and_for_programs(row):
    path, command = row
    streams = {"assignor encode", "assignor sample", "completion"}
    if not ({" ".join(path), path[-1]} & streams):
        forms = next(option for option in command.params if option.name == "form")
        assert list(forms.type.choices[:2]) == ["text", "json"]


@pytest.mark.parametrize(
    "words",
    [
        "assignor inspect --group",
        "assignor features describe --group",
        "rolling-bounce plan --from 3.1 --to 3.9 --group",
        "spark-assign group --store plans --out plan --name",
    ],
)
def test_a_name_that_is_no_utf_8_is_one_sentence(words):
    """Python reads such an argument as a text with half a surrogate pair."""
    program, *rest = words.split()
    [command] = [each for each in PROGRAMS if each.name == program]
    done = CliRunner().invoke(command, [*rest, "g\udcff"], prog_name=program)
    option = rest[-1]
    assert done.exit_code == 2
    assert done.stderr.endswith(f": {option} 'g\\udcff' is no valid UTF-8; give a valid text.\n")


@every_command
def test_help_is_readable_on_80_columns_and_has_examples_and_the_exit_status(row, monkeypatch):
    path, _ = row
    monkeypatch.setenv("COLUMNS", "80")
    program = next(candidate for candidate in PROGRAMS if candidate.name == path[0])
    text = CliRunner().invoke(program, [*path[1:], "--help"]).stdout
    assert [line for line in text.splitlines() if len(line) > 80] == []
    parts = [text.index(f"\n{part}:\n") for part in ("Options", "Examples", "Exit status")]
    assert parts == sorted(parts)
    assert f"  {path[0]} " in text[parts[1] : parts[2]]
    assert "-h, --help" in text


@every_command
def test_every_command_documents_its_exit_statuses(row):
    _, command = row
    assert {0, 2, 3} <= command.exits.keys() <= {0, 1, 2, 3}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda command: command.name)
def test_a_group_of_commands_shows_the_short_help_of_each_command(program):
    for name, row in program.subcommands.items():
        command = program.get_command(click.Context(program, info_name=program.name), name)
        assert row.sentence == command.get_short_help_str(limit=200), name


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda command: command.name)
def test_every_program_has_a_version(program):
    output = CliRunner().invoke(program, ["--version"]).stdout
    assert re.fullmatch(rf"{program.name}, version \S+\n", output)


# Replacements that make examples quick and keep them in this process. Below, examples that do not
# run here, and where similar ones run.
QUICK = (
    (r"--seeds \d+", "--seeds 2 --workers 1"),
    (r"(PROGRAM explore .*)", r"\1 --max-states 50 --more-states 0"),
    (r"(PROGRAM plan (?!.*--(?:to streams|streams-group)).*)", r"\1 --seeds 1"),
    (r"--workers \d+", "--workers 1"),
)
NOT_RUN = (
    (
        r"--bootstrap-server|--command-config",
        "needs a cluster: tests/assignor/cli",
    ),
    (r"PROGRAM (live|soak)\b", "starts processes: system_tests/scenarios"),
    (r"PROGRAM broker\b", "runs until a signal: tests/system_tests/cli/test_broker.py"),
    (r"PROGRAM (batch|group|whatif|compare)\b", "starts a JVM: tests/spark_assign"),
    (r"--overwrite|--out ", "starts a JVM: tests/spark_assign"),
    (r"PROGRAM matrix(?! --from 2\.3\.1)", "takes minutes: test_matrix"),
    (r"--report", "writes a file: tests/system_tests/report"),
    (r"--minutes", "takes minutes"),
    (r"--state-dir", "needs a member's directory: tests/assignor/cli/features/test_topologies.py"),
    (r"--topology", "needs an application: docs/change-topology.md"),
)
STATUS = {
    "2/2,3/3": 1,
    "--seeds 2 --workers 1 --from 2.0.1 --to 2.3.0 --force": (0, 1),
    "explore --from 2.0.1": (0, 1),
    "explore --from 2.4.1": (0, 1),
}


def examples():
    for path, command in COMMANDS:
        text = re.sub(r" \\\n\s+", " ", command.examples)
        text = re.sub(r"\|\n\s+", "| ", text)
        for line in text.splitlines():
            if "PROGRAM" in line and not line.startswith("eval"):
                yield path[0], re.sub(r"\s+# .*", "", line)


def words_of(program, line):
    """Arguments of the program in a line of shell, and the file for its stdin."""
    part = next(piece for piece in line.split(" | ") if "PROGRAM" in piece or program in piece)
    words = shlex.split(part.partition("PROGRAM")[2])
    words = words[: words.index(">")] if ">" in words else words
    if "<" not in words:
        return words, None
    at = words.index("<")
    return words[:at], words[at + 1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory with the files of the examples."""
    monkeypatch.chdir(tmp_path)
    groups = JOIN.read_text(encoding="utf-8")
    first = json.loads(groups.splitlines()[0]) | {"name": "join-1"}
    group = json.dumps(first) + "\n"
    for name, text in (
        ("groups.jsonl", group),
        ("group.json", group),
        ("answers.jsonl", answer := answer_of(group)),
        ("before.jsonl", answer),
        ("after.jsonl", answer),
        ("questions", QUESTION),
        ("blobs.jsonl", QUESTION),
        ("fields.jsonl", FIELDS),
        ("my_module.py", "from assignor import sticky as my_strategy\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "blob.bin").write_bytes(bytes.fromhex(ANSWER))
    (tmp_path / "state").mkdir()
    return tmp_path


def answer_of(group):
    words = ["assign", "--problem", "-", "--format", "json"]
    return CliRunner().invoke(PROGRAMS[0], words, input=group).stdout


def quick(line):
    for pattern, instead in QUICK:
        line = re.sub(pattern, instead, line)
    return line


@pytest.mark.parametrize(
    ("program", "line"),
    [row for row in examples() if not any(re.search(part, row[1]) for part, _ in NOT_RUN)],
)
def test_an_example_does_what_its_comment_promises(program, line, folder):
    if "--directory" in line and "storage format" not in line:
        made = line.partition("--directory ")[2].split()[0]
        CliRunner().invoke(
            PROGRAMS[0], ["storage", "format", "--metadata-version", "2", "--directory", made]
        )
    words, stdin = words_of(program, quick(line))
    typed = (folder / stdin).read_bytes() if stdin else QUESTION.encode()
    if "--hex -" in line:
        typed = b"0000006300000063"
    run = next(command for command in PROGRAMS if command.name == program)
    done = CliRunner().invoke(run, words, input=typed)
    expected = next((status for part, status in STATUS.items() if part in " ".join(words)), 0)
    assert done.exit_code in (expected if isinstance(expected, tuple) else (expected,)), done.output
    assert done.stdout


@pytest.mark.parametrize(("program", "line"), list(examples()))
def test_every_example_is_a_command_that_there_is(program, line):
    words, _ = words_of(program, line)
    command = next(candidate for candidate in PROGRAMS if candidate.name == program)
    context = click.Context(command, info_name=program)
    while isinstance(command, click.Group) and words:
        command, words = command.get_command(context, words[0]), words[1:]
        assert command is not None
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    assert [word for word in words if word.startswith("--") and word not in known] == []
