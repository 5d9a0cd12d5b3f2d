"""What the three programs complete, and the lines that shells get from them."""

import pytest
from click.testing import CliRunner

from docs.generators.commands import PROGRAMS

COMMANDS = {command.name: command for command in PROGRAMS}


def completions(program, words):
    """Return what a program completes after these words."""
    variables = {
        f"_{program.replace('-', '_').upper()}_COMPLETE": "bash_complete",
        "COMP_WORDS": f"{program} {words} ",
        "COMP_CWORD": str(len(words.split()) + 1),
    }
    output = CliRunner(env=variables).invoke(COMMANDS[program], []).stdout
    return [tuple(line.split(",", 1)) for line in output.splitlines()]


@pytest.mark.parametrize(
    ("program", "words", "expected"),
    [
        ("assignor", "", {"assign", "completion", "inspect", "features"}),
        ("assignor", "features", {"describe", "upgrade-all"}),
        ("assignor", "negotiate --release", {"2.3", "2.3.1", "native"}),
        ("rolling-bounce", "", {"live", "plan", "simulate"}),
        ("rolling-bounce", "simulate --to", {"4.1", "native"}),
        ("rolling-bounce", "matrix --from", {"0.10.0", "incompatible"}),
        ("spark-assign", "simulate --from", {"3.1", "native"}),
        ("spark-assign", "batch --strategy", {"sticky", "high_availability"}),
        ("spark-assign", "completion", {"bash", "zsh", "fish"}),
    ],
)
def test_commands_releases_and_strategies_are_completed(program, words, expected):
    assert {("plain", word) for word in expected} <= set(completions(program, words))


@pytest.mark.parametrize(
    ("program", "words", "kind"),
    [
        ("assignor", "assign --problem", "file"),
        ("assignor", "features describe --directory", "dir"),
        ("rolling-bounce", "simulate --report", "file"),
        ("spark-assign", "batch --in", "file"),
        ("spark-assign", "batch --out", "dir"),
    ],
)
def test_files_and_folders_are_left_to_the_shell(program, words, kind):
    assert completions(program, words)[0][0] == kind


@pytest.mark.parametrize("program", COMMANDS)
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_their_lines(program, shell):
    output = CliRunner().invoke(COMMANDS[program], ["completion", shell]).stdout
    assert f"{program.replace('-', '_').upper()}_COMPLETE={shell}_complete" in output
