"""Blocks of docs/ run and print what they show, or say why not; all commands in pages exist."""

import importlib.util
import re

import click
import pytest

from assignor.cli import main as assignor_main
from spark_assign.cli.main import main as spark_main
from system_tests.cli.main import main as bounce_main
from tests.docs.pages import ROOT, RUN, SHOWN, blocks, pages

# tests/spark_assign runs these: in the Spark session of its tests, or with spark-submit.
SPARK_PAGES = {"notebook", "cluster"}
README = ROOT / "README.md"
DOCS = [p for p in pages() if ROOT / "docs" in p.parents and p.stem not in SPARK_PAGES]
ALL = [*pages(), ROOT / "CONTRIBUTING.md"]
PROGRAMS = {"assignor": assignor_main, "rolling-bounce": bounce_main, "spark-assign": spark_main}
# Blocks that take long.
LONG = [b for path in [README, *DOCS] for b in blocks(path) if b.marked("slow") is not None]
GENERATED = {path.stem for path in (ROOT / "docs/generators").glob("*.py")}


def name_of(path):
    return path.relative_to(ROOT).with_suffix("").as_posix()


def runs(path):
    return any(not b.why_not and (b.kind in RUN or b.marked("file")) for b in blocks(path))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", [README, *filter(runs, DOCS)], ids=name_of)
def test_the_blocks_of_a_page_run_in_order_and_print_what_they_show(path, session):
    for block in blocks(path):
        if block not in LONG:
            session.run(block)
    session.run_python(path.relative_to(ROOT).as_posix())


@pytest.mark.nightly("two commands of 20 s and 6 s; every run bounces and explores in other tests")
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("block", LONG, ids=str)
def test_long_blocks_run(block, session):
    session.run(block)


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_every_block_has_a_language_that_is_known(path):
    fences = re.findall(r"^```(\S*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) % 2 == 0
    assert {kind or "none" for kind in fences[::2]} <= RUN | SHOWN
    assert set(fences[1::2]) <= {""}


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_no_code_hides_in_an_indent(path):
    text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"(?:\A|\n)(?![-*\d]|  ).*\n\n( {4,}\S.*)", text) == []


@pytest.mark.parametrize("path", [p for p in pages() if p.stem not in GENERATED], ids=name_of)
def test_blocks_that_are_only_shown_hold_no_command(path):
    found = [
        f"{block}: {line}"
        for block in blocks(path)
        if block.kind in SHOWN and block.marked("prints") is None
        for line in block.body.splitlines()
        if re.match(rf"\$ |({'|'.join(PROGRAMS)}) [a-z]|make [a-z]|python3? -m ", line)
    ]
    assert found == []


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_marks_are_known_and_blocks_that_do_not_run_have_a_reason(path):
    known = r"exact|shape|until|exit \d|background|file \S+|slow|prints|then prints: .+"
    wrong = [
        f"{block}: {mark}"
        for block in blocks(path)
        for mark in block.marks
        if not re.fullmatch(known, mark)
    ]
    assert wrong == []
    assert [str(b) for b in blocks(path) if b.why_not and b.kind not in RUN] == []


def commands(path):
    """Yield the commands in blocks and in the text, each with its position."""
    for block in blocks(path):
        if block.kind in ("sh", "console"):
            for command, _ in block.commands:
                yield str(block), command
    text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"`([^`]+)`", text):
        yield path.name, " ".join(span.split())


def wrong_with(command):
    """Return what is wrong with a command of this project, or None; ignore other commands."""
    words = re.split(r"[|;>]", command)[0].split()
    if words[:2] == ["python", "-m"] and len(words) > 2:
        name = words[2]
        top = name.split(".")[0]
        is_package = (ROOT / top).is_dir()
        return f"no module {name}" if is_package and not importlib.util.find_spec(name) else None
    if words[:1] == ["make"] and len(words) > 1 and words[1].islower():
        targets = re.findall(
            r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
        )
        return None if words[1] in targets else f"no target {words[1]}"
    if not words or words[0] not in PROGRAMS:
        return None
    return wrong_option(PROGRAMS[words[0]], words[1:])


def wrong_option(command, words):
    """Return the first option or subcommand that does not exist, or None."""
    while isinstance(command, click.Group):
        if not words or words[0].startswith("-") or not words[0].replace("-", "").islower():
            break
        sub = command.get_command(click.Context(command), words[0])
        if sub is None:
            return f"no subcommand {words[0]}"
        command, words = sub, words[1:]
    known = {name for item in command.params for name in (*item.opts, *item.secondary_opts)}
    known |= {"--help", "-h", "--version"}
    given = [word.split("=")[0].rstrip(",.;:)") for word in words if word.startswith("--")]
    wrong = [name for name in given if name not in known]
    return f"no option {wrong[0]}" if wrong else None


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_commands_in_text_and_in_blocks_exist_with_their_options(path):
    found = [(where, command, wrong_with(command)) for where, command in commands(path)]
    assert [f"{where}: {command}: {wrong}" for where, command, wrong in found if wrong] == []


def test_wrong_commands_are_seen():
    assert wrong_with("assignor inspect --no-such HOST") == "no option --no-such"
    assert wrong_with("assignor nothing --all") == "no subcommand nothing"
    assert wrong_with("python -m system_tests.nothing") == "no module system_tests.nothing"
    assert wrong_with("make nothing") == "no target nothing"
    assert wrong_with("assignor inspect --bootstrap-server HOST:PORT --all | jq .") is None
