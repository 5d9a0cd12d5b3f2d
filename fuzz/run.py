"""Run coverage-guided fuzzing: `make fuzz FUZZ_SECONDS=60`.

    python -m fuzz.run --seconds 60     # fuzz; exit status 0 no finding, 1 a finding, 3 no atheris
    python -m fuzz.run --only led_group # one part
    python -m fuzz.run FILE ...         # run inputs again; needs no atheris

The time is split over the parts: the decoders of `encoding` together, then each other target. Each
part runs in a child process with atheris (libFuzzer), restarted every ten minutes with the inputs
found so far. This process counts executions, writes the input of a finding to `fuzz/findings/` and
prints how to run it again. An input is one byte that selects a target, then the bytes for the
target. Besides the targets' promises, each execution must end within seconds; for a sample of
inputs, memory and time must be linear in the input.
"""

import argparse
import contextlib
import hashlib
import logging
import re
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import NamedTuple

from fuzz.corpus import read_corpus, unpack_corpus

ROOT = Path(__file__).resolve().parent
FINDINGS = ROOT / "findings"
SECONDS_EACH = 10  # limit of one execution, also on a busy machine
MEMORY_MB = 1024
SECONDS_A_TURN = 600  # restart: the fuzzer's memory grows by half a kilobyte per execution
INPUT_BYTES_MAX = 4096
SAMPLED = 128  # one input in so many is measured
PEAK_BASE, PEAK_PER_BYTE = 6_000_000, 400  # bytes; a few bytes may name 2**14 subtopologies
SECONDS_BASE, SECONDS_PER_BYTE = 0.25, 100e-6  # under the fuzzer's instrumentation
INSTRUMENTED = [
    "encoding",
    "assignor.inspection",
    "assignor.levels",
    "assignor.problems",
    "assignor.rebalance",
    "assignor.stores",
    "probing.member",
]
REPLAY = "python -m fuzz.run"


def run_input(data: bytes, *, measured: bool = False) -> None:
    """Give an input to its target.

    Raises:
        Finding: a promise does not hold; any other exception is a finding as well.
    """
    # Imported here: atheris must be active before the first import to instrument it.
    from fuzz.targets import TARGETS  # noqa: PLC0415 see above

    if not data:
        return
    targets = tuple(TARGETS.values())
    check, rest = targets[data[0] % len(targets)], data[1:]
    if measured:
        _check_cost(check, rest)
    else:
        check(rest)


def _check_cost(check, data: bytes) -> None:  # noqa: ANN001 a target
    from fuzz.targets import expect  # noqa: PLC0415 as in run_input

    check(data)  # fills the caches
    tracemalloc.start()
    try:
        check(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    limit = PEAK_BASE + PEAK_PER_BYTE * len(data)
    expect(peak <= limit, f"memory follows the input: {peak} bytes for {len(data)} of input")
    allowed = SECONDS_BASE + SECONDS_PER_BYTE * len(data)
    taken = allowed + 1
    for _ in range(3):  # the best of three: a busy machine is no finding
        began = time.thread_time()
        check(data)
        taken = min(taken, time.thread_time() - began)
        if taken <= allowed:
            return
    expect(holds=False, promise=f"time follows the input: {taken:.2f} s for {len(data)} bytes")


def parts() -> dict[str, list[int]]:
    """Name of a part -> positions of its targets; the decoders of `encoding` are one part."""
    from fuzz.targets import TARGETS, WHOLE  # noqa: PLC0415 as in run_input

    names = list(TARGETS)
    encoding = [index for index, name in enumerate(names) if name not in WHOLE]
    return {"encoding": encoding, **{name: [names.index(name)] for name in sorted(WHOLE)}}


def _placed(data: bytes, positions: list[int]) -> bytes:
    """The input with a first byte that selects one of these targets."""
    if not data or data[0] in positions:
        return data
    return bytes([positions[data[0] % len(positions)]]) + data[1:]


def fuzz(part: str, flags: list[str]) -> None:
    """Run libFuzzer with these flags in this process; it ends the process."""
    import atheris  # noqa: PLC0415 replaying inputs needs no atheris

    logging.disable(logging.CRITICAL)  # members log each answer that they cannot take
    with atheris.instrument_imports(include=INSTRUMENTED):
        import fuzz.targets  # noqa: F401, PLC0415 imports these, instrumented
    from fuzz.mutator import mutate  # noqa: PLC0415 imports encoding, after that

    positions = parts()[part]

    def run_one_input(data: bytes) -> None:
        run_input(_placed(data, positions), measured=zlib.crc32(data) % SAMPLED == 0)

    atheris.Setup([sys.argv[0], *flags], run_one_input, custom_mutator=mutate)
    atheris.Fuzz()


def watch(chosen: list[str], seconds: int, seed: int, keep: Path | None) -> int:
    """Fuzz these parts for ``seconds`` in total and print the result of each; the exit status."""
    FINDINGS.mkdir(exist_ok=True)
    status, executions, findings = 0, 0, 0
    for number, part in enumerate(chosen):
        share = seconds * (number + 1) // len(chosen) - seconds * number // len(chosen)
        watched = _watch_part(part, max(1, share), seed, keep)
        status = max(status, watched.status)
        executions += watched.executions
        findings += watched.findings
        print(
            f"{part:<16} {watched.executions:>9} executions {watched.findings:>3} findings"
            f" {watched.branches:>6} branches seen",
            flush=True,
        )
    print(f"{executions} executions, {findings} findings")
    return status


class Watched(NamedTuple):
    """Result of a part: exit status and counts."""

    status: int
    executions: int
    findings: int
    branches: str


def _watch_part(part: str, seconds: int, seed: int, keep: Path | None) -> Watched:
    positions = parts()[part]
    executions, branches, status, log, written = 0, "0", 0, "", []
    with tempfile.TemporaryDirectory() as scratch:
        found, seeds = Path(scratch, "found"), Path(scratch, "seeds")
        found.mkdir()
        unpack_corpus(seeds, positions)
        for turn, start in enumerate(range(0, seconds, SECONDS_A_TURN)):
            length = min(SECONDS_A_TURN, seconds - start)
            status, log = _turn(part, Path(scratch, "log"), [found, seeds], length, seed + turn)
            counts = re.findall(r"(?m)^stat::number_of_executed_units: (\d+)", log)
            executions += sum(map(int, counts))
            branches = (re.findall(r" cov: (\d+)", log) or [branches])[-1]
            written = [Path(path) for path in re.findall(r"Test unit written to (\S+)", log)]
            if status != 0:
                break
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for path in sorted(found.iterdir()):
                placed = _placed(path.read_bytes(), positions)
                (keep / f"{part}-{path.name}").write_bytes(placed)
    if status != 0 and not written:
        print(log[-4000:], file=sys.stderr)
        print("the fuzzer failed without a finding; see its output above", file=sys.stderr)
        return Watched(3, executions, 0, branches)
    if written:
        traceback = log.rfind("=== Uncaught Python exception")
        print(log[traceback:][:6000] if traceback >= 0 else log[-6000:])
    for path in written:
        path.write_bytes(_placed(path.read_bytes(), positions))
        print(f"replay it with: {REPLAY} {path.relative_to(ROOT.parent)}")
    return Watched(1 if written else 0, executions, len(written), branches)


def _turn(part: str, log: Path, folders: list[Path], seconds: int, seed: int) -> tuple[int, str]:
    """Run one process of the fuzzer, which reads all folders and adds inputs to the first.

    Returns:
        (exit status, log).
    """
    command = [
        *(sys.executable, "-m", "fuzz.run", "--in-process", part, *map(str, folders)),
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-timeout={SECONDS_EACH}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-artifact_prefix={FINDINGS}/",
        "-print_final_stats=1",
    ]
    with log.open("wb") as output:
        done = subprocess.run(command, cwd=ROOT.parent, stdout=output, stderr=output, check=False)
    return done.returncode, log.read_text(errors="replace", encoding="utf-8")


def replay(paths: list[Path]) -> int:
    """Run inputs again and measure them; the first finding is raised with its traceback."""
    for path in paths:
        data = path.read_bytes()
        print(f"{path.name}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:12]}")
        run_input(data, measured=True)
    print(f"{len(paths)} inputs, 0 findings")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run the command line (see the module docstring); the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["--in-process"]:
        fuzz(given[1], given[2:])
        return 0
    parser = argparse.ArgumentParser(prog=REPLAY, description="Fuzz the readers of foreign bytes.")
    parser.add_argument("inputs", nargs="*", type=Path, help="inputs to run again")
    parser.add_argument("--seconds", type=int, default=60, help="how long to fuzz (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the fuzzer (default 1)")
    parser.add_argument("--only", choices=sorted(parts()), help="fuzz only this part")
    parser.add_argument("--keep", type=Path, help="folder for inputs that reached new branches")
    options = parser.parse_args(given)
    if options.inputs:
        return replay(options.inputs)
    try:
        import atheris  # noqa: F401, PLC0415 only to say early that it is missing
    except ImportError:
        print("atheris is not installed: pip install 'streams-rebalance[dev]'", file=sys.stderr)
        return 3
    print(f"fuzzing for {options.seconds} s from {len(read_corpus())} seeds", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        chosen = [options.only] if options.only else list(parts())
        return watch(chosen, options.seconds, options.seed, options.keep)
    return 3


if __name__ == "__main__":
    sys.exit(main())
