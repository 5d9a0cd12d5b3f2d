"""The groups that ``plan --all`` plans: of a file, of a directory of files, or of a cluster."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from assignor import RebalanceError
from assignor.cli import connected, line_error, problem_lines, target_of
from assignor.inspection import groups_below, problem_of
from assignor.problems import ProblemError, parse_problem
from encoding import shown
from system_tests.plan import SavedGroup, saved_group


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGroup:
    """A group, or why it is none.

    Attributes:
        name: the group id; of a line without one, the file and the line.
        place: the file and the line, or empty.
        saved: the group; None: see `problem`.
        problem: why there is no group, else empty.
    """

    name: str
    place: str = ""
    saved: SavedGroup | None = None
    problem: str = ""


def distinct_groups(groups: Iterable[FoundGroup], others: Iterable[str]) -> list[FoundGroup]:
    """Return the groups, each with the names of those that begin with its own.

    The second group of a name, of another cluster perhaps, has its error in the place of a plan.

    Args:
        groups: as found.
        others: names of more groups of the same cluster.
    """
    found: dict[str, FoundGroup] = {}
    for group in groups:
        first = found.get(group.name)
        if first is None:
            found[group.name] = group
            continue
        name = f"{group.name} ({group.place})"
        while name in found:
            name += "'"
        problem = (
            f"group {shown(group.name)} is also in {first.place}: two groups of one name have one"
            " row and one page; plan the files of two clusters apart"
        )
        found[name] = replace(group, name=name, saved=None, problem=problem)
    names = {*found, *others}
    return [_with_longer(group, names) for group in found.values()]


def _with_longer(found: FoundGroup, names: Iterable[str]) -> FoundGroup:
    if found.saved is None:
        return found
    return replace(found, saved=found.saved.beside(groups_below(names, found.name)))


def saved_groups(path: Path) -> Iterator[FoundGroup]:
    """Yield the groups of a file of `inspect --all --save`, or of all files of a directory.

    A line, or a file, that is not a saved group comes with its error instead of a group.

    Raises:
        ProblemError: there is no group at all, or `path` cannot be read.
    """
    files = (
        sorted(p for p in path.iterdir() if p.suffix in (".json", ".jsonl"))
        if path.is_dir()
        else [path]
    )
    count = 0
    for file in files:
        try:
            if path.is_dir() and not file.is_file():
                raise OSError("it is no file")  # noqa: TRY301 the row is that of other errors
            with file.open("rb") as stream:
                for number, line in enumerate(problem_lines(stream), 1):
                    count += 1
                    yield _saved_line(file, number, line)
        except OSError as error:
            if not path.is_dir():
                raise ProblemError(f"{file} cannot be read: {error.strerror or error}") from None
            count += 1
            problem = f"{file} cannot be read: {error.strerror or error}"
            yield FoundGroup(name=file.name, place=file.name, problem=problem)
        except (RebalanceError, click.ClickException) as error:
            if not path.is_dir():
                raise
            count += 1
            yield FoundGroup(name=file.name, place=file.name, problem=f"{file}: {error}")
    if not count:
        what = "has no group (*.json, *.jsonl)" if path.is_dir() else "has no group"
        raise ProblemError(f"{path} {what}; write it with assignor inspect --all --save")


def _saved_line(file: Path, number: int, line: bytes) -> FoundGroup:
    place = f"{file.name}:{number}"
    name = ""
    try:
        data = parse_problem(line, number=number)
        given = data.get("name")
        name = shown(given) if isinstance(given, str) else ""
        saved = saved_group(data)
        return FoundGroup(name=saved.group.name or place, place=place, saved=saved)
    except RebalanceError as error:
        problem = f"{file}: {line_error(number, error, f'group {name}' if name else '')}"
        return FoundGroup(name=name or place, place=place, problem=problem)


def live_groups(
    given: Mapping[str, Any], skipped: list[str], others: list[str]
) -> Iterator[FoundGroup]:
    """Yield the groups of a cluster.

    Args:
        given: the options.
        skipped: gets the groups that are not of Kafka Streams, with the reason.
        others: gets the names of all groups.
    """
    target = target_of(given["bootstrap_server"], given["command_config"], given["timeout"])
    with connected(target) as admin:
        from assignor.adapters.admin import look_at_all_groups  # noqa: PLC0415 the client is an extra

        for look in look_at_all_groups(admin):
            name = look.described.group_id
            others.append(name)
            try:
                yield FoundGroup(name=name, saved=saved_group(problem_of(look)))
            except RebalanceError as error:
                if look.is_streams or look.streams_group is not None:
                    yield FoundGroup(name=name, problem=str(error))
                else:
                    skipped.append(f"{name}: {look.summary}")
