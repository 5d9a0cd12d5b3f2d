"""``assignor inspect``: the subscriptions and assignments of live groups."""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from assignor.cli.inspect.all_groups import not_shown, render_groups
from assignor.cli.inspect.document import document_of, failed_document
from assignor.cli.inspect.text import render_group
from assignor.cli.toolkit.commands import Command
from assignor.cli.toolkit.connect import (
    NO_BROKER,
    ConnectFailure,
    connect_options,
    connected,
    target_of,
)
from assignor.cli.toolkit.exit_status import AnswerIsNo, warn
from assignor.cli.toolkit.options import format_option
from assignor.cli.toolkit.text import Sentence, print_uncut, text_console
from assignor.inspection import GroupInspection, is_present, problem_line, problem_of
from assignor.problems import ProblemError

if TYPE_CHECKING:
    from assignor.adapters.admin import Target

_HELP = """Inspect a live group: its subscriptions, assignments, and members that limit its version.

The command works on Kafka Streams groups, on groups of this project and on mixed groups. Of other
consumer groups it shows what the consumer protocol contains. It changes nothing and triggers no
rebalance. It needs DESCRIBE on the group, and on its topics to compute lags.

"wrote" is the used and latest supported version of a subscription; +101 is the native version that
a member of this project also supports. "got" is the version of the assignment. "lag" is the number
of records between the committed and the end offsets of a client's input. "behind" is the largest
lag of its state copies: end offsets now, minus offset sums at the last rebalance.
"""
_EXAMPLES = """
PROGRAM inspect --bootstrap-server localhost:9092 --group orders
PROGRAM inspect --command-config client.properties --all
PROGRAM inspect --bootstrap-server localhost:9092 --group orders --watch 2
PROGRAM inspect --bootstrap-server localhost:9092 --all --save groups.jsonl
# What happens if a client fails?
PROGRAM inspect --bootstrap-server localhost:9092 --group orders \\
    --save group.json --dies CLIENT
PROGRAM assign --problem group.json --simulate
"""
_NOT_LISTED = "Groups that this user may not describe are not listed."
_EXITS = {
    1: "the group does not exist, is not authorized, or cannot be shown or saved; or the login is "
    "rejected",
    3: NO_BROKER,
}


@click.command(
    "inspect",
    cls=Command,
    help=_HELP,
    short_help="Inspect a live group: versions, tasks, lags, findings.",
    examples=_EXAMPLES,
    exits=_EXITS,
)
@connect_options
@click.option("--group", "group_id", metavar="GROUP", help="Group id (application.id).")
@click.option("--all", "everything", is_flag=True, help="All groups of the cluster, one per row.")
@click.option(
    "--tasks", is_flag=True, help="Also list every task; of a streams group, the first 1,000."
)
@click.option(
    "--watch", type=click.FloatRange(0.1), metavar="SECONDS", help="Repeat at this interval."
)
@click.option("--times", type=click.IntRange(1), help="With --watch: stop after this many times.")
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a problem file for assign, diff, explain, size and rolling-bounce plan; with --all "
    "one group per line.",
)
@click.option(
    "--lags",
    type=click.Choice(("caught-up", "reported")),
    default="caught-up",
    show_default=True,
    help="With --save: write copies as caught up, or with the lags that members reported.",
)
@click.option(
    "--dies",
    multiple=True,
    metavar="CLIENT",
    help="With --save: leave this client out, as if it had failed; may be repeated.",
)
@format_option()
def inspect(
    *,
    bootstrap_server: str | None,
    command_config: Path | None,
    timeout: float | None,
    **given: Any,
) -> None:
    """Entry point of the subcommand."""
    _check_usage(given)
    target = target_of(bootstrap_server, command_config, timeout)
    if given["watch"] is not None:
        _watch(target, given)
        return
    looks = _looks(target, given)
    if given["save"] is not None:
        _save(looks, given)
    _print(looks, given)
    if not given["everything"] and not is_present(looks[0].described):
        raise AnswerIsNo(f"{looks[0].summary}; list all groups with --all")


def _check_usage(given: dict[str, Any]) -> None:
    """Reject options that cannot be combined; the first row that applies gives the message."""
    group_id, everything, watch = given["group_id"], given["everything"], given["watch"]
    for is_wrong, message in (
        (bool(group_id) == everything, "give either --group GROUP or --all"),
        (given["save"] and watch, "--save and --watch exclude each other"),
        (given["dies"] and not (given["save"] and group_id), "--dies needs --group and --save"),
        (given["times"] and not watch, "--times needs --watch"),
    ):
        if is_wrong:
            raise click.UsageError(message)


def _looks(target: "Target", given: dict[str, Any]) -> list[GroupInspection]:
    """Return the inspection of the given group, or of all groups."""
    with connected(target) as admin:
        # If the client is missing, `connected` has reported it.
        from assignor.adapters.admin import (  # noqa: PLC0415 the client is an extra
            BrokerError,
            look_at_all_groups,
            look_at_group,
        )

        if given["everything"]:
            return list(look_at_all_groups(admin))
        try:
            return [look_at_group(admin, given["group_id"])]
        except BrokerError:
            raise
        except Exception as error:
            raise AnswerIsNo(f"group {given['group_id']} {not_shown(error)}") from error


def _print(looks: Sequence[GroupInspection], given: dict[str, Any]) -> None:
    if given["form"] == "json":
        for look in looks:
            sys.stdout.write(json.dumps(_document(look, given)) + "\n")
        sys.stdout.flush()
        return
    if given["everything"] or is_present(looks[0].described):
        print_uncut(_rendered(looks, given, text_console()))


def _document(look: GroupInspection, given: dict[str, Any]) -> dict[str, Any]:
    """Return the document of one group; with --all, a group that cannot be shown yields the error.

    Raises:
        AnswerIsNo: the group given by --group cannot be shown.
    """
    try:
        return document_of(look)
    except Exception as error:
        why = not_shown(error)
        if not given["everything"]:
            raise AnswerIsNo(f"group {given['group_id']} {why}") from error
        return failed_document(look.described.group_id, why)


def _rendered(
    looks: Sequence[GroupInspection], given: dict[str, Any], console: Console
) -> RenderableType:
    if given["everything"]:
        width = console.width if console.is_terminal else None
        if not looks:
            return Text("no group that this user may describe")
        return Group(render_groups(looks, width=width), Text(_NOT_LISTED, style="dim"))
    now_ms = int(time.time() * 1000)
    try:
        return render_group(
            looks[0],
            width=console.width,
            now_ms=now_ms,
            tasks=given["tasks"],
            cut=console.is_terminal,
        )
    except Exception as error:
        raise AnswerIsNo(f"group {given['group_id']} {not_shown(error)}") from error


def _watch(target: "Target", given: dict[str, Any]) -> None:
    """Inspect at every interval until interrupted; a failure is shown and the next try follows."""
    console = text_console()
    with (
        Live(console=console, auto_refresh=False, vertical_overflow="visible") as live,
        suppress(KeyboardInterrupt),
    ):
        for number in count(1):
            shown = _watched(target, given, console)
            if shown is not None and console.is_terminal:
                live.update(shown, refresh=True)
            elif shown is not None:
                print_uncut(shown)
            if number == given["times"]:
                return
            time.sleep(given["watch"])


def _watched(target: "Target", given: dict[str, Any], console: Console) -> RenderableType | None:
    """Return one inspection with its time; None if it has been printed as JSON."""
    stamp = Text(time.strftime("%H:%M:%S"), style="dim")
    try:
        looks = _looks(target, given)
        if given["form"] == "json":
            _print(looks, given)
            return None
        return Group(stamp, _rendered(looks, given, console))
    except (ConnectFailure, AnswerIsNo) as error:
        return Group(stamp, Sentence(error.format_message(), style="red"))


def _save(looks: Sequence[GroupInspection], given: dict[str, Any]) -> None:
    """Write one problem per line; with --all, warn about groups that cannot be saved.

    Raises:
        AnswerIsNo: no group can be saved.
        ConnectFailure: the file cannot be written.
    """
    lines, left_out = [], {}
    for look in looks:
        try:
            problem = problem_of(look, lags=given["lags"], dies=given["dies"])
            lines.append(problem_line(problem))
        except ProblemError as error:
            left_out[look.described.group_id] = str(error)
        except Exception as error:  # noqa: BLE001 an error in one group must not hide the others
            left_out[look.described.group_id] = f"{type(error).__name__}: {error}"
    if not given["everything"] and left_out:
        raise AnswerIsNo(left_out[given["group_id"]])
    for name, why in left_out.items():
        warn(f"group {name} is not saved: {why}")
    if not lines:
        raise AnswerIsNo("no group can be saved; the warnings above give the reasons")
    try:
        with given["save"].open("w", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise ConnectFailure(f"cannot write {given['save']}: {error.strerror or error}") from None
