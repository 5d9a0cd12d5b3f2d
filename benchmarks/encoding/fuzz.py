"""Number of fuzzer inputs in a given time, and number of findings.

`python -m benchmarks.encoding.fuzz [--seconds 60]`. Exit status 1: there is a finding.
"""

import argparse
import re
import subprocess
import sys

from benchmarks.rows import at_most, say

PART = "encoding"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    name = f"findings in {options.seconds} s of fuzzing"
    command = [sys.executable, "-m", "fuzz.run", "--seconds", str(options.seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    counts = re.search(r"(\d+) executions, (\d+) findings", done.stdout)
    if counts is None:
        say(PART, name, f"not measured: {(done.stderr or done.stdout).strip()[-200:]}", "<= 0")
        return 0
    print(done.stdout)
    executions, findings = map(int, counts.groups())
    say(PART, "  inputs tried", executions)
    return int(at_most(PART, name, findings, 0).met is False)


if __name__ == "__main__":
    sys.exit(main())
