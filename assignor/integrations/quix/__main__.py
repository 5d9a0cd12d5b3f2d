"""`python -m assignor.integrations.quix FILE`: runs a Quix application's file on the assignor."""

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quixstreams import Application

from assignor.cli import settings_of
from assignor.config import config_from_mapping
from assignor.errors import ConfigError
from assignor.integrations.quix.application import streams_assignor
from encoding import RebalanceError, shown

_PROGRAM = "python -m assignor.integrations.quix"
_NEEDS = "each `Application.run` in FILE becomes a member of a group with this assignor"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the file as `python FILE` does, with `streams_assignor` around each `Application.run`."""
    parser = argparse.ArgumentParser(_PROGRAM, description=f"Run a Quix application: {_NEEDS}.")
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting of the assignor, by Kafka's name: num.standby.replicas=1; may be repeated",
    )
    parser.add_argument("--endpoint", metavar="HOST:PORT", help="where the process answers queries")
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="arguments of FILE")
    given = parser.parse_args(arguments)
    if not given.file.is_file():
        parser.error(f"{shown(str(given.file))} is no file; name the application's Python file")
    try:
        settings = config_from_mapping(settings_of(given.config))
    except ConfigError as error:
        parser.error(str(error))
    options = {name: getattr(settings, name) for name in settings.__slots__}
    _run_file(given.file, given.rest, options | {"endpoint": given.endpoint})


def _run_file(file: Path, arguments: Sequence[str], options: dict[str, Any]) -> None:
    run = Application.run

    def run_as_member(app: Any, *words: Any, **keywords: Any) -> Any:
        with streams_assignor(app, **options):
            return run(app, *words, **keywords)

    sys.argv = [str(file), *arguments]
    sys.path[0] = str(file.resolve().parent)
    Application.run = run_as_member
    try:
        runpy.run_path(str(file), run_name="__main__")
    except RebalanceError as error:
        sys.exit(f"{_PROGRAM}: {error}")
    finally:
        Application.run = run


if __name__ == "__main__":
    main()
