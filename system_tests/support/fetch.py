"""Download the jars of the tests marked `real`: `python -m system_tests.support.fetch`.

With `--pin` it also fetches those of `make rehearse-claims`, and writes the checksums of all jars
to `checksums.txt`. A jar without a pinned checksum is refused; check it and pin it first, as the
message says.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from probing import NEWEST_KAFKA, RELEASES, find_release
from system_tests.errors import EnvironmentFailureError
from system_tests.real import PINS, broker_jars, broker_release, sha256, streams_jars, tools_jars
from system_tests.support.claims import CLAIMS

BROKERS = ("kafka:3.9", "kafka:4.3", "kafka:4")
_CURRENT_SINCE = find_release("3.9.0").order
CURRENT = tuple(
    {
        release.series: release.name
        for release in RELEASES
        if not release.is_native and release.order >= _CURRENT_SINCE
    }.values()
)
"""The newest patch of each series from 3.9 on."""
STREAMS = ("1.1.1", "2.0.1", "2.3.0", "2.3.1", "2.8.2", "3.1.2", "3.9.1", *CURRENT)
_EXIT_ENVIRONMENT = 3


def main(arguments: Sequence[str]) -> int:
    """Download the jars, print one line per release, and return the exit status."""
    found: dict[str, Path] = {}
    try:
        for name, jars in _all_jars(with_claims="--pin" in arguments):
            found.update({jar.name: jar for jar in jars})
            size_mb = sum(jar.stat().st_size for jar in jars) / 1e6
            sys.stdout.write(f"{name:<22}{len(jars):>3} jars {size_mb:>6.1f} MB\n")
            sys.stdout.flush()
    except EnvironmentFailureError as error:
        sys.stderr.write(f"{error}\n")
        return _EXIT_ENVIRONMENT
    if "--pin" in arguments:
        head = PINS.read_text(encoding="utf-8").splitlines()[0]
        rows = [f"{sha256(jar)}  {name}" for name, jar in sorted(found.items())]
        PINS.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return 0


def _all_jars(*, with_claims: bool) -> Iterator[tuple[str, tuple[Path, ...]]]:
    for broker in BROKERS:
        release = broker_release(broker)
        yield f"broker {release}", broker_jars(release)
        yield f"tools {release}", tools_jars(release)
    for release in STREAMS:
        yield f"Kafka Streams {release}", streams_jars(release)
    runs = [run for claim in CLAIMS for run in claim.runs if with_claims]
    for release in sorted({NEWEST_KAFKA, *(name for run in runs for name in (run.old, run.new))}):
        yield f"stores on disk {release}", streams_jars(release, on_disk=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
