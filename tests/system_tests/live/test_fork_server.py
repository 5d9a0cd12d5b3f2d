"""A forked member process behaves like any process: pipes, status, signals, its end."""

import os
import signal
import subprocess
import sys

import pytest

from system_tests.support.fork_server import ForkedProcess, ForkServer, Reports

pytestmark = pytest.mark.usefixtures("clock")
# Name of a module, its source, its status and the last line that it prints as an error.
ENDINGS = {
    "ends_with_text": ('import sys; sys.exit("why it ended")', 1, "why it ended"),
    "ends_with_a_large_number": ("import sys; sys.exit(259)", 3, ""),
    "ends_with_a_negative_number": ("import sys; sys.exit(-2)", 254, ""),
    "ends_with_nothing": ("import sys; sys.exit()", 0, ""),
    "is_interrupted": ("raise KeyboardInterrupt", -signal.SIGINT, "KeyboardInterrupt"),
    "fails": ("raise OSError('no disk')", 1, "OSError: no disk"),
    "has_a_thread": (
        """
import atexit, sys, threading, time

def late():
    time.sleep(0.5)
    print("a thread", file=sys.stderr)

atexit.register(lambda: print("registered for the end", file=sys.stderr))
threading.Thread(target=late).start()
""",
        0,
        "a thread\nregistered for the end",
    ),
    "has_a_thread_and_fails": (
        """
import sys, threading, time

def late():
    time.sleep(0.5)
    print("a thread", file=sys.stderr)

threading.Thread(target=late).start()
sys.exit("failed")
""",
        1,
        "failed\na thread",
    ),
    "prints_late": ("input(); print('late')", None, ""),
    "has_a_thread_that_does_not_end": (
        """
import threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
print("main has ended", flush=True)
""",
        None,
        "",
    ),
}


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("endings")
    for name, (source, _, _) in ENDINGS.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def server(modules):
    started = ForkServer()
    yield started
    started.close()


def interpreter(name):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    return subprocess.Popen([sys.executable, "-m", name], text=True, env=environment, **pipes)


def closed(process):
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


def test_a_module_reads_prints_and_ends_with_its_status(server):
    process = ForkedProcess(server, ["system_tests.live.members.kafka_python"])
    process.stdin.write("no configuration\n")
    process.stdin.flush()
    assert "bad configuration" in process.stderr.read()
    assert process.wait(60) == 2
    assert process.poll() == 2
    process.kill()  # of a process that is gone: nothing
    closed(process)


@pytest.mark.slow
def test_a_module_that_was_not_imported_before_runs_as_main(server):
    process = ForkedProcess(server, ["this"])
    assert "Zen of Python" in process.stdout.read()
    assert process.wait(60) == 0
    closed(process)


@pytest.mark.slow
def test_a_killed_process_has_its_signal_as_status(server):
    process = ForkedProcess(server, ["system_tests.live.members.kafka_python"])
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.1)
    assert process.poll() is None
    process.kill()
    assert process.wait(60) == -signal.SIGKILL
    closed(process)


@pytest.mark.slow
def test_an_error_is_printed_and_is_status_1(server):
    process = ForkedProcess(server, ["no_such_module"])
    assert "no_such_module" in process.stderr.read()
    assert process.wait(60) == 1
    closed(process)


@pytest.mark.parametrize(
    "name", [name for name, (_, status, _) in ENDINGS.items() if status is not None]
)
def test_it_ends_as_an_interpreter_does(server, name):
    _, status, printed = ENDINGS[name]
    for process in (interpreter(name), ForkedProcess(server, [name])):
        lines = process.stderr.read().splitlines()
        assert "\n".join(lines[-2:]).endswith(printed)
        assert printed or not lines
        assert process.wait(60) == status
        closed(process)


@pytest.mark.slow
def test_a_thread_that_does_not_end_keeps_the_process(server):
    process = ForkedProcess(server, ["has_a_thread_that_does_not_end"])
    assert process.stdout.readline() == "main has ended\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.kill()
    assert process.wait(60) == -signal.SIGKILL
    closed(process)


@pytest.mark.slow
def test_output_that_nobody_reads_is_a_status_as_of_an_interpreter(server):
    for process in (interpreter("prints_late"), ForkedProcess(server, ["prints_late"])):
        process.stdout.close()
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert process.wait(60) == 120
        closed(process)


def test_the_status_of_an_earlier_process_of_the_same_id_is_forgotten():
    reports = Reports()
    reports.note("started 71 0")
    assert reports.next_started(0) == 71
    reports.note("ended 71 3")
    assert reports.status(71, 0) == 3
    reports.note("started 71 0")
    assert reports.status(71, 0) is None
    reports.note("ended 71 -9")
    assert reports.status(71, 0) == -9


def test_processes_end_with_the_server_however_it_ends(modules):
    killed = ForkServer()
    process = ForkedProcess(killed, ["has_a_thread_that_does_not_end"])
    assert process.stdout.readline() == "main has ended\n"
    killed._process.kill()
    assert process.stdout.read() == ""  # until the kernel has closed its end of the pipe
    closed(process)
    killed.close()
