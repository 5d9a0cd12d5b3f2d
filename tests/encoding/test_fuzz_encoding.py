"""The fuzz targets over the whole corpus, and the fuzzer itself for a while."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from random import Random

import msgpack
import pytest

from fuzz import fuzz_encoding, targets
from fuzz.corpus import FOLDER, read_corpus
from fuzz.make_seeds import golden_seeds, native_seeds, view_seeds
from fuzz.mutator import mutated

ROOT = Path(__file__).resolve().parents[2]
CORPUS_BYTES_MAX = 300_000
CORPUS = read_corpus()


@pytest.mark.parametrize("target", targets.TARGETS)
def test_no_input_of_the_corpus_breaks_a_promise(target):
    seeds = [seed for seed in CORPUS if seed.target == target]
    assert seeds
    for seed in seeds:
        targets.TARGETS[target](seed.data)


def test_the_corpus_is_small_and_made_of_what_it_says():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.jsonl")) < CORPUS_BYTES_MAX
    kept = read_corpus("seeds")
    assert {seed[::2] for seed in golden_seeds()} < {seed[::2] for seed in kept}
    # Ours are those of the day they were made; `python -m fuzz.make_seeds` makes them anew.
    made = [*native_seeds(), *view_seeds()]
    assert made == [*native_seeds(), *view_seeds()]
    assert {seed.target for seed in kept} == {seed.target for seed in (*made, *golden_seeds())}


def test_what_costs_more_than_its_length_is_a_finding():
    def hungry(data):
        return [bytes(10_000_000)]

    with pytest.raises(targets.Finding, match="memory follows the input"):
        fuzz_encoding._check_cost(hungry, b"")


def test_what_takes_longer_than_its_length_is_a_finding(monkeypatch):
    monkeypatch.setattr(fuzz_encoding, "SECONDS_BASE", 0.0)
    monkeypatch.setattr(fuzz_encoding, "SECONDS_PER_BYTE", 0.0)
    with pytest.raises(targets.Finding, match="time follows the input"):
        fuzz_encoding._check_cost(lambda _: sum(range(1000)), b"")


def test_the_mutator_changes_one_value_and_keeps_the_rest_of_a_trailer_whole():
    seed = next(s for s in CORPUS if s.name == "v11 with a trailer" and s.target[0] == "s")
    start = seed.data.index(b"\xf5SRA")
    for number in range(200):
        dice = Random(number)  # noqa: S311 not a secret
        changed = mutated(b"\1" + seed.data, 4096, dice, lambda data, _: data + b"!")[1:]
        assert changed[: start + 4] == seed.data[: start + 4]
        if changed[:-1] == seed.data:
            continue  # the fuzzer's own
        length = int.from_bytes(changed[start + 4 : start + 8])
        assert length == len(changed) - start - 8
        msgpack.unpackb(changed[start + 16 :], object_pairs_hook=list, strict_map_key=False)


def run(*arguments):
    command = [sys.executable, "-m", "fuzz.fuzz_encoding", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_kept_input_is_run_again_by_one_command(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"\0" + CORPUS[0].data)
    done = run(str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "1 inputs, 0 findings"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    find_spec("atheris") is None and not os.environ.get("CI"),
    reason="atheris is not installed; it has wheels for Linux on x86-64",
)
def test_the_fuzzer_finds_nothing():
    seconds = os.environ.get("FUZZ_SECONDS") or ("60" if os.environ.get("CI") else "10")
    done = run("--seconds", seconds)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.stdout.write(done.stdout)  # `pytest -rP` shows how many there were
    summary = re.fullmatch(r"(\d+) executions, 0 findings.*", done.stdout.splitlines()[-1])
    assert int(summary[1]) > len(CORPUS)
