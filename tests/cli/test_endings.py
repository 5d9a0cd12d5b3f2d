"""The three programs with pipes, terminals, shells and old locales; Ctrl-C while one reads.

Every wait for a process is for visible output or its end, with a limit of minutes.
"""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from docs.generators.commands import PROGRAMS as PROGRAM_COMMANDS

JOIN = Path(__file__).parents[1] / "assignor" / "problems" / "join.jsonl"
PROGRAMS = {
    "assignor": "assignor.entry",
    "rolling-bounce": "system_tests.entry",
    "spark-assign": "spark_assign.entry",
}
# A quick command of each program that needs no broker and no JVM.
QUICK = {
    "assignor": ("assign", "--problem", str(JOIN)),
    "rolling-bounce": ("plan", "--from", "3.9", "--to", "native", "--seeds", "1"),
    "spark-assign": ("batch", "--help"),
}
COMMANDS = {command.name: command for command in PROGRAM_COMMANDS}
WAIT_S = 240
pytestmark = pytest.mark.timeout(600)
STYLE = re.compile(rb"\x1b\[[0-9;]*m")

every_program = pytest.mark.parametrize("program", list(PROGRAMS))
real_process = pytest.mark.usefixtures("clock")


def argv(program, *words):
    return [sys.executable, "-m", PROGRAMS[program], *words]


def environment(**more):
    plain = {name: value for name, value in os.environ.items() if name not in COLOUR}
    return plain | {"TERM": "xterm-256color", "COLUMNS": "100"} | more


COLOUR = {"NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING", "PYTHONUTF8", "LC_ALL", "LANG"}


def run(program, *words, **settings):
    options = {"capture_output": True, "timeout": WAIT_S, "env": environment()} | settings
    return subprocess.run(argv(program, *words), check=False, **options)


def on_a_terminal(arguments, *, env):
    """Exit status and output of a process on a terminal."""
    child, terminal = pty.fork()
    if not child:
        os.execve(arguments[0], arguments, env)  # noqa: S606 the child of the fork
    seen, ends = b"", time.monotonic() + WAIT_S
    try:
        while time.monotonic() < ends:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                read = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
            if not read:
                break
            seen += read
        else:
            os.kill(child, 9)
    finally:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(terminal)
    return status, seen


@real_process
@every_program
def test_a_closed_reader_of_a_pipe_is_no_error(program):
    reads, writes = os.pipe()
    os.close(reads)
    done = run(
        program, *QUICK[program], capture_output=False, stdout=writes, stderr=subprocess.PIPE
    )
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, b"")


@real_process
@every_program
def test_a_closed_output_is_reported_before_anything_is_done(program):
    shell = ["sh", "-c", 'exec "$0" "$@" >&-', *argv(program, *QUICK[program])]
    done = subprocess.run(
        shell, capture_output=True, timeout=WAIT_S, env=environment(), check=False
    )
    assert done.returncode == 3
    assert done.stderr.decode().startswith(f"{program}: standard output is closed; ")
    assert len(done.stderr.splitlines()) == 1


@real_process
@every_program
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_one_sentence(program):
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = run(
            program, *QUICK[program], capture_output=False, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 3
    assert done.stderr.decode().startswith(f"{program}: ")
    assert b"No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@real_process
@every_program
def test_without_stderr_the_answer_is_given_all_the_same(program):
    shell = ["sh", "-c", 'exec "$0" "$@" 2>&-', *argv(program, *QUICK[program])]
    done = subprocess.run(
        shell, capture_output=True, timeout=WAIT_S, env=environment(), check=False
    )
    assert done.returncode == 0
    assert done.stdout


@real_process
@pytest.mark.parametrize(
    ("program", "locale", "encoding"),
    [
        ("assignor", "C", "ascii"),
        ("assignor", "POSIX", "latin-1"),
        ("rolling-bounce", "C", "ascii"),
        ("spark-assign", "POSIX", "latin-1"),
    ],
)
def test_old_terminals_and_locales_get_what_they_can_show(program, locale, encoding):
    env = environment(LC_ALL=locale, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    done = run(program, *QUICK[program], env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (b"##" in done.stdout) is (program == "assignor")  # bars, with what there is


@every_program
def test_a_pipe_gets_no_colour(program):
    done = CliRunner().invoke(COMMANDS[program], QUICK[program])
    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert "█" in done.stdout or program != "assignor"


@real_process
@pytest.mark.parametrize("program", ["assignor", "rolling-bounce"])
def test_no_color_is_respected_on_a_terminal(program):
    status, seen = on_a_terminal(argv(program, *QUICK[program]), env=environment(NO_COLOR="1"))
    assert status == 0
    assert STYLE.findall(seen) == []


@real_process
def test_a_terminal_gets_colour_and_a_frame():
    status, seen = on_a_terminal(argv("assignor", *QUICK["assignor"]), env=environment())
    assert status == 0
    assert STYLE.findall(seen)
    _, framed = on_a_terminal(
        argv("assignor", "negotiate", "--members", "10/11,11/11"), env=environment(NO_COLOR="1")
    )
    assert "┃".encode() in framed


def test_a_wide_table_is_not_cut_in_a_pipe(tmp_path):
    group = json.loads(JOIN.read_text(encoding="utf-8").splitlines()[0])
    racks = [letter * 90 for letter in "rst"]
    for number, client in enumerate(group["clients"].values()):
        client["rack"] = racks[number % len(racks)]
    file = tmp_path / "wide.jsonl"
    file.write_text(json.dumps(group) + "\n", encoding="utf-8")
    words = ["assign", "--problem", str(file)]
    output = CliRunner().invoke(COMMANDS["assignor"], words).stdout
    assert [rack for rack in racks[: len(group["clients"])] if rack not in output] == []


@pytest.mark.usefixtures("alone")
def test_ctrl_c_ends_a_command_that_reads_with_one_line():
    words = argv("assignor", "assign", "--problem", "-", "--format", "json")
    line = JOIN.read_text(encoding="utf-8").splitlines()[0]
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    with process:
        process.stdin.write(line + "\n")
        process.stdin.flush()
        assert '"clients"' in process.stdout.readline()  # it reads the next problem now
        process.send_signal(2)
        assert process.wait(WAIT_S) == 130
        assert process.stderr.read() == "assignor: interrupted.\n"


def completed(tmp_path, program, words):
    """The completions of bash with the script that the program prints."""
    binary = tmp_path / program
    binary.write_text(
        f"#!{sys.executable}\nfrom {PROGRAMS[program]} import main\nmain()\n", encoding="utf-8"
    )
    binary.chmod(0o755)
    function = f"_{program.replace('-', '_')}_completion"
    script = (
        f'eval "$({program} completion bash)"; COMP_WORDS=({program} {" ".join(words)} "");'
        f" COMP_CWORD={len(words) + 1}; {function} {program};"
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    )
    env = environment(PATH=f"{tmp_path}:{os.environ['PATH']}")
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=WAIT_S, env=env, check=False
    )
    return done.stdout.split()


@real_process
@pytest.mark.parametrize(
    ("program", "words", "expected"),
    [
        ("assignor", ["assign", "--strategy"], {"sticky", "high_availability"}),
        ("rolling-bounce", ["plan", "--from"], {"3.9", "3.9.1", "native", "next"}),
        ("spark-assign", [], {"batch", "whatif", "completion"}),
    ],
)
def test_bash_completes(tmp_path, program, words, expected):
    assert expected <= set(completed(tmp_path, program, words))


@pytest.mark.parametrize(
    ("program", "words", "status", "message"),
    [
        ("assignor", "asign", 2, "no such command 'asign'; did you mean assign?"),
        ("assignor", "assign --problm x", 2, "no such option --problm; did you mean --problem?"),
        ("assignor", "assign --problem {tmp}/none", 2, "No such file or directory"),
        ("assignor", "assign --problem {tmp}", 2, "Is a directory"),
        ("assignor", "explain --problem {empty}", 2, "the file has no group"),
        ("assignor", "diff --problem {empty}", 2, "the file has no group"),
        ("assignor", "size --problem {empty}", 2, "line 1, column 1"),
        ("assignor", "negotiate --members 1", 2, "member 1 is '1'"),
        ("assignor", "negotiate --members 2/2 --release 2.33", 2, "the nearest known releases are"),
        ("assignor", "assign --problem {empty} --strategy stick", 2, "sticky"),
        ("assignor", "assign --problem {join} --config num=1", 2, "num_standby_replicas"),
        ("rolling-bounce", "plan --from 3.99 --to native", 2, "the nearest known releases are"),
        ("rolling-bounce", "plan --problem {tmp} --to native", 2, "is a directory"),
        ("rolling-bounce", "plan --problem {empty} --to native", 2, "JSON"),
        ("rolling-bounce", "simulat", 2, "did you mean simulate?"),
        ("rolling-bounce", "inspect", 2, "did you mean assignor inspect?"),
        ("assignor", "plan --to 4.4", 2, "did you mean rolling-bounce plan?"),
        ("rolling-bounce", "simulate --seed x", 2, "'x' is not a valid integer"),
        ("rolling-bounce", "simulate --faults al", 2, "al"),
        ("spark-assign", "whatiff", 2, "did you mean whatif?"),
        ("spark-assign", "batch --in x", 2, "missing option '--out'"),
    ],
)
def test_invalid_input_is_one_sentence_of_each_program(program, words, status, message, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("", encoding="utf-8")
    given = words.format(tmp=tmp_path, empty=empty, join=JOIN).split()
    done = CliRunner().invoke(COMMANDS[program], given)
    assert (done.exit_code, done.stdout) == (status, "")
    assert done.stderr.startswith(program)
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
