"""The fuzz targets with the whole corpus, and a short run of the fuzzer."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from fuzz import run as runner
from fuzz import targets
from fuzz.corpus import read_corpus
from fuzz.make_seeds import golden_seeds

ROOT = Path(__file__).resolve().parents[2]
CORPUS = read_corpus()
POSITIONS = {name: number for number, name in enumerate(targets.TARGETS)}


@pytest.mark.parametrize("target", targets.TARGETS)
def test_no_input_of_the_corpus_breaks_a_promise(target):
    seeds = [seed for seed in CORPUS if seed.target == target]
    assert seeds
    for seed in seeds:
        targets.TARGETS[target](seed.data)


def test_the_golden_bytes_are_in_the_corpus():
    stored = {seed[::2] for seed in read_corpus("seeds")}
    assert {seed[::2] for seed in golden_seeds()} < stored, "run python -m fuzz.make_seeds"


def test_excessive_cost_for_the_length_is_a_finding():
    def slow(data):
        return [bytes(10_000_000)]

    with pytest.raises(targets.Finding, match="memory follows the input"):
        runner._check_cost(slow, b"")


def test_excessive_time_for_the_length_is_a_finding(monkeypatch):
    monkeypatch.setattr(runner, "SECONDS_BASE", 0.0)
    monkeypatch.setattr(runner, "SECONDS_PER_BYTE", 0.0)
    with pytest.raises(targets.Finding, match="time follows the input"):
        runner._check_cost(lambda _: sum(range(1000)), b"")


def test_a_kept_input_is_run_again_by_one_command(tmp_path, capsys):
    path = tmp_path / "input"
    path.write_bytes(b"\0" + CORPUS[0].data)
    assert runner.main([str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 inputs, 0 findings"


@pytest.mark.usefixtures("clock")
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    find_spec("atheris") is None and not os.environ.get("CI"),
    reason="atheris is not installed; it has wheels for Linux on x86-64",
)
@pytest.mark.nightly("mutated bytes for ten seconds a part, one minute; every run has the corpus")
@pytest.mark.parametrize("part", runner.parts())
def test_the_fuzzer_finds_nothing(part):
    command = [sys.executable, "-m", "fuzz.run", "--only", part]
    command += ["--seconds", os.environ.get("FUZZ_SECONDS") or "10"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.stdout.write(done.stdout)  # `pytest -rP` shows how many there were
    summary = re.fullmatch(r"(\d+) executions, 0 findings.*", done.stdout.splitlines()[-1])
    names = {name for name, at in POSITIONS.items() if at in runner.parts()[part]}
    assert int(summary[1]) >= sum(seed.target in names for seed in CORPUS)
