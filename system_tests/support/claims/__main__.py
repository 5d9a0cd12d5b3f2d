"""`python -m system_tests.support.claims [--only NAME] [--list]`: run claims about releases.

Exit status 1: what was seen differs from a claim; 2: a usage error; 3: no broker, no jars, no Java.
"""

import argparse
import sys
from collections.abc import Sequence

from system_tests.errors import EnvironmentFailureError
from system_tests.real import broker_release, running_real_broker
from system_tests.support.claims import CLAIMS, Application, rehearse

# It accepts members from 2.0 on, and all that a claim needs of a broker exists in it.
_BROKER = "kafka:3.9"
_EXIT_ENVIRONMENT = 3


def main(arguments: Sequence[str]) -> int:
    """Run the claims, print a line for each pair of releases, and return the exit status."""
    names = [claim.name for claim in CLAIMS]
    parser = argparse.ArgumentParser(prog="make rehearse-claims", description=__doc__)
    parser.add_argument("--only", action="append", choices=names, help="a claim; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the claims, and run none")
    options = parser.parse_args(arguments)
    claims = [claim for claim in CLAIMS if not options.only or claim.name in options.only]
    if options.list:
        sys.stdout.writelines(f"{claim.name}: {claim.says}\n" for claim in claims)
        return 0

    def write(line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()

    try:
        with running_real_broker(broker_release(_BROKER)) as broker:
            holds = rehearse(
                claims,
                lambda claim, folder: Application(
                    broker.bootstrap_servers,
                    folder,
                    topology=claim.topology,
                    settings=claim.settings,
                ),
                write,
            )
    except EnvironmentFailureError as error:
        sys.stderr.write(f"{error}\n")
        return _EXIT_ENVIRONMENT
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
