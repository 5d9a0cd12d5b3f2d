"""The fuzz target of `encoding`, and the command that runs it: `make fuzz FUZZ_SECONDS=60`.

A process with atheris (libFuzzer) inside, a new one every ten minutes that goes on from what the
last one found, is watched by this one, which counts executions, keeps the input of a finding under
`fuzz/findings/` and says how to run it again. An input is one byte that picks a target, then the
bytes that the target gets. Beside the targets' own promises, each execution has to end within
seconds, and a sample of them is held to memory and time that follow the length of the input.

    python -m fuzz.fuzz_encoding --seconds 60     # fuzz; 0 no finding, 1 a finding, 3 no atheris
    python -m fuzz.fuzz_encoding FILE ...         # run inputs again; needs no atheris
"""

import argparse
import contextlib
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zlib
from pathlib import Path

from fuzz.corpus import read_corpus, unpack_corpus

ROOT = Path(__file__).resolve().parent
FINDINGS = ROOT / "findings"
SECONDS_EACH = 10  # of one execution, whatever the machine does beside it
MEMORY_MB = 1024
SECONDS_A_TURN = 600  # the fuzzer itself grows by half a kilobyte per execution: begin anew in time
INPUT_BYTES_MAX = 4096
SAMPLED = 128  # one input in so many is measured
PEAK_BASE, PEAK_PER_BYTE = 6_000_000, 400  # bytes; 2**14 subtopologies may be claimed for nothing
SECONDS_BASE, SECONDS_PER_BYTE = 0.25, 100e-6  # under the fuzzer's instrumentation
REPLAY = "python -m fuzz.fuzz_encoding"


def run_input(data: bytes, *, measured: bool = False) -> None:
    """Give an input to its target.

    Raises:
        Finding: a promise does not hold; any other exception is one as well.
    """
    # Not at the top: instrumented only if atheris was asked to before the first import.
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
    for _ in range(3):  # the best of three: a machine with other work is no finding
        began = time.thread_time()
        check(data)
        taken = min(taken, time.thread_time() - began)
        if taken <= allowed:
            return
    expect(holds=False, promise=f"time follows the input: {taken:.2f} s for {len(data)} bytes")


def fuzz(flags: list[str]) -> None:
    """Run libFuzzer in this process; it ends the process. Flags and folders are libFuzzer's."""
    import atheris  # noqa: PLC0415 only here, so that inputs can be replayed without it

    with atheris.instrument_imports(include=["encoding", "assignor.inspection"]):
        import fuzz.targets  # noqa: F401, PLC0415 imports encoding, instrumented
    from fuzz.mutator import mutate  # noqa: PLC0415 imports encoding, after that

    def one_input(data: bytes) -> None:
        run_input(data, measured=zlib.crc32(data) % SAMPLED == 0)

    atheris.Setup([sys.argv[0], *flags], one_input, custom_mutator=mutate)
    atheris.Fuzz()


def watch(seconds: int, seed: int, keep: Path | None) -> int:
    """Fuzz for so many seconds in processes of their own and print what came of it."""
    FINDINGS.mkdir(exist_ok=True)
    executions, branches, status, log, written = 0, "0", 0, "", []
    with tempfile.TemporaryDirectory() as scratch:
        found, seeds = Path(scratch, "found"), Path(scratch, "seeds")
        found.mkdir()
        unpack_corpus(seeds)
        for turn, start in enumerate(range(0, seconds, SECONDS_A_TURN)):
            length = min(SECONDS_A_TURN, seconds - start)
            status, log = _turn(Path(scratch, "log"), [found, seeds], length, seed + turn)
            counts = re.findall(r"(?m)^stat::number_of_executed_units: (\d+)", log)
            executions += sum(map(int, counts))
            branches = (re.findall(r" cov: (\d+)", log) or [branches])[-1]
            written = re.findall(r"Test unit written to (\S+)", log)
            if status != 0:
                break
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for path in sorted(found.iterdir()):
                shutil.copy(path, keep / path.name)
    if status != 0 and not written:
        print(log[-4000:], file=sys.stderr)
        print("the fuzzer stopped without a finding; its last words are above", file=sys.stderr)
        return 3
    if written:
        traceback = log.rfind("=== Uncaught Python exception")
        print(log[traceback:][:6000] if traceback >= 0 else log[-6000:])
        for path in written:
            print(f"replay it with: {REPLAY} {Path(path).relative_to(ROOT.parent)}")
    print(f"{executions} executions, {len(written)} findings, {branches} branches seen")
    return 1 if written else 0


def _turn(log: Path, folders: list[Path], seconds: int, seed: int) -> tuple[int, str]:
    """One process of the fuzzer; it reads all folders and adds to the first."""
    command = [
        *(sys.executable, "-m", "fuzz.fuzz_encoding", "--in-process", *map(str, folders)),
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
    return done.returncode, log.read_text(errors="replace")


def replay(paths: list[Path]) -> int:
    """Run inputs again, measured; the first finding comes with its traceback."""
    for path in paths:
        data = path.read_bytes()
        print(f"{path.name}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:12]}")
        run_input(data, measured=True)
    print(f"{len(paths)} inputs, 0 findings")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line; see the top of the file."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["--in-process"]:
        fuzz(given[1:])
        return 0
    parser = argparse.ArgumentParser(prog=REPLAY, description="Fuzz the decoders of encoding.")
    parser.add_argument("inputs", nargs="*", type=Path, help="inputs to run again")
    parser.add_argument("--seconds", type=int, default=60, help="how long to fuzz (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="of the fuzzer's dice (default 1)")
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
        return watch(options.seconds, options.seed, options.keep)
    return 3


if __name__ == "__main__":
    sys.exit(main())
