"""Entry point of `spark-assign`. This release has the door only: no subcommand yet."""

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="streams-rebalance")
def main() -> None:
    """Task assignment as a Spark job. This release has no subcommands yet; use `assignor`."""
