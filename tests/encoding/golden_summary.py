"""A pytest plugin that prints the number of matching golden vectors by kind, release and version.

The numbers are user properties of the test reports, so pytest-xdist sends them to its controller.
"""

from collections import Counter

_agreed = Counter()


def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        for name, value in report.user_properties:
            if name == "golden":
                kind, release, version, count = value
                _agreed[kind, release, version] += count


def pytest_terminal_summary(terminalreporter):
    if not _agreed:
        return
    terminalreporter.section("golden vectors of Kafka Streams, read and written alike")
    for kind in sorted({key[0] for key in _agreed}):
        rows = {key: count for key, count in _agreed.items() if key[0] == kind}
        terminalreporter.write_line(f"{kind}: {sum(rows.values())}")
        for release in sorted({key[1] for key in rows}, key=_numbers):
            counts = sorted((key[2], count) for key, count in rows.items() if key[1] == release)
            cells = " ".join(f"v{version}:{count}" for version, count in counts)
            terminalreporter.write_line(f"  {release:<9} {cells}")


def _numbers(release):
    return tuple(int(part) for part in release.split("."))
