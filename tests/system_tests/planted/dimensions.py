"""Plant one fault in the code, and require that the checker for it fails (groups with dimensions).

Each fault is planted alone. Bounces of a few seeds, or a search, run until its checker fails. The
results are stored in docs/planted.json, from which docs/planted.md is generated.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest import mock

import click

from assignor.rebalance import StreamsMember, member
from assignor.rebalance.leader import answer_bytes, placing, withholding
from encoding import ViewForm, ViewReference
from system_tests.coordinator import static
from system_tests.explore import Bounds, explore
from system_tests.sim import (
    BounceOptions,
    Dimensions,
    plan_bounce,
    run_bounce,
)
from tests.system_tests.planted.rules import STORED

SEEDS: Final = range(60)
MAX_STATES: Final = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One planted fault.

    Attributes:
        checker: the checker that must fail.
        why: the effect of the fault.
        place: module or class of the replaced function, and its name.
        broken: original function -> its replacement.
        options: options of `simulate`, besides --draw all and the seed.
        searched: options of `explore` with two members, if a search finds the fault, too.
    """

    checker: str
    why: str
    place: tuple[Any, str]
    broken: Callable[[Callable[..., Any]], Callable[..., Any]]
    options: Mapping[str, Any]
    searched: Mapping[str, Any] | None = None

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Plant the fault while the context is open."""
        owner, name = self.place
        with mock.patch.object(owner, name, self.broken(getattr(owner, name))):
            yield


def _reports_epoch_0(original):
    return lambda view: ViewReference(0, original(view).checksum)


def _never_says_that_it_is_static(original):
    def part(self, *args, **kwargs):
        native = original(self, *args, **kwargs)
        return None if native is None else replace(native, instance_id=None)

    return part


def _swaps_answers(original):
    def rename(group, member, new_id):
        original(group, member, new_id)
        others = [other for other in group.members.values() if other is not member]
        if others:
            member.assignment = others[0].assignment

    return rename


def _remembers_hosts(original):
    seen: dict[str, str] = {}

    def host_map(endpoints, *rest):
        seen.update(endpoints)
        return original(seen, *rest)

    return host_map


def _keeps_copies_at_home(original):
    """Give every copy to the next thread of the process that runs the task."""

    def by_thread(read, *rest):
        active, _, _ = original(read, *rest)
        clients: dict[str, list[str]] = {}
        for thread in read:
            clients.setdefault(thread.client, []).append(thread.id)
        standby = {
            name: active[names[place - 1]]
            for names in clients.values()
            for place, name in enumerate(names)
            if len(names) > 1
        }
        return active, standby, {}

    return by_thread


def _looks_for_ever(_):
    def next_rebalance(_tried, _stalled, generation, _frozen):
        knowledge, config = generation.knowledge, generation.settings.config
        return {knowledge.leader_id: knowledge.now_ms + config.probing_rebalance_interval_ms}

    return next_rebalance


_NATIVE = {"old": "native", "new": "native"}
FAULTS: Final = (
    Fault(
        checker="revoked before given",
        why="the leader does not withhold tasks from the next owner",
        place=(withholding, "_is_owned_elsewhere"),
        broken=lambda _: lambda *_: False,
        options=_NATIVE,
        searched={"cooperative": True},
    ),
    Fault(
        checker="reports what it holds",
        why="a member reports epoch 0 for its view",
        place=(member, "view_reference"),
        broken=_reports_epoch_0,
        options=_NATIVE,
        searched={"views": True},
    ),
    Fault(
        checker="form fits the report",
        why="the leader sends references to members that hold no view",
        place=(answer_bytes, "choose_view_form"),
        broken=lambda _: lambda *_: ViewForm.REFERENCE,
        options=_NATIVE,
        searched={"views": True},
    ),
    Fault(
        checker="own answer",
        why="the coordinator gives a restarted static member the assignment of another member",
        place=(static, "_rename"),
        broken=_swaps_answers,
        options={"static": True, **_NATIVE},
        searched={"views": True, "static": True},
    ),
    Fault(
        checker="routes as decided",
        why="a member ignores a delta and keeps its old view",
        place=(sys.modules["assignor.rebalance.held_tasks"], "apply_delta"),
        broken=lambda _: lambda held, *_: held,
        options=_NATIVE,
        searched={"views": True},
    ),
    Fault(
        checker="endpoints at rest",
        why="the host maps of JVM members keep hosts that no longer exist",
        place=(answer_bytes, "host_map"),
        broken=_remembers_hosts,
        options={"old": "3.1.2", "new": "3.9.1"},
        searched={"endpoints": True, "old": "3.1.2", "new": "3.9.1"},
    ),
    Fault(
        checker="owners at rest",
        why="static members do not report that they are static, so references are kept for them",
        place=(StreamsMember, "_native_part"),
        broken=_never_says_that_it_is_static,
        options={"static": True, **_NATIVE},
        searched={"views": True, "static": True},
    ),
    Fault(
        checker="standbys as asked",
        why="the leader schedules no follow-up rebalance for warm-ups",
        place=(placing, "_next_rebalance"),
        broken=lambda _: lambda *_: {},
        options=_NATIVE,
    ),
    Fault(
        checker="warm-ups as marked",
        why="the leader does not mark warm-ups",
        place=(placing, "_by_thread"),
        broken=lambda by_thread: lambda *args: (*by_thread(*args)[:2], {}),
        options=_NATIVE,
    ),
    Fault(
        checker="standby elsewhere",
        why="copies go to another thread of the process that runs the task",
        place=(placing, "_by_thread"),
        broken=_keeps_copies_at_home,
        options={"threads": 2, **_NATIVE},
        searched={"standbys": 1, "threads": 2},
    ),
    Fault(
        checker="warm-ups end",
        why="the leader always schedules a follow-up rebalance",
        place=(placing, "_next_rebalance"),
        broken=_looks_for_ever,
        options=_NATIVE,
    ),
)


def bounce_of(fault: Fault, seed: int) -> BounceOptions:
    """Return the bounce of a seed."""
    return BounceOptions(seed=seed, draw_all=True, **fault.options)


def command(options: BounceOptions) -> str:
    """Return the command that replays a bounce."""
    words = [f"simulate --seed {options.seed} --draw all --from {options.old} --to {options.new}"]
    words += [f"--threads {options.threads}"] if options.threads > 1 else []
    words += ["--static"] if options.static else []
    return " ".join(words)


def red(options: BounceOptions) -> list[str]:
    """Return the names of the rules that a bounce breaks."""
    return sorted({violation.rule for violation in run_bounce(options).broken})


def seed_of(fault: Fault) -> int:
    """Return the first seed whose bounce is good, but breaks the checker's rule with the fault.

    Raises:
        LookupError: no seed of `SEEDS`.
    """
    for seed in SEEDS:
        options = bounce_of(fault, seed)
        with fault.planted():
            is_found = fault.checker in red(options)
        if is_found and not red(options):
            return seed
    raise LookupError(f"{fault.checker}: nothing goes red within {len(SEEDS)} seeds")


def search_of(fault: Fault) -> tuple[Any, Bounds, str]:
    """Return plan and bounds of the fault's search, and its command."""
    given = dict(fault.searched or {})
    old, new = given.pop("old", "native"), given.pop("new", "native")
    threads = given.pop("threads", 1)
    is_static = given.pop("static", False)
    asked = {"cooperative": False, "endpoints": False, "views": False, "standbys": 0, **given}
    dimensions = Dimensions.of(2, **asked)
    plan = plan_bounce(BounceOptions(old=old, new=new, static=is_static, dimensions=dimensions))
    bounds = Bounds(
        members=2,
        threads=threads,
        static=is_static,
        partitions=4 * threads,
        max_states=MAX_STATES,
        more_states=0,
        dimensions=dimensions,
    )
    words = [f"explore --from {old} --to {new} --members 2"]
    words += [f"--threads {threads}"] if threads > 1 else []
    words += ["--static"] if is_static else []
    words += ["--protocol cooperative"] if asked["cooperative"] else []
    words += [f"--{name}" for name in ("endpoints", "views") if asked[name]]
    words += [f"--standbys {asked['standbys']}"] if asked["standbys"] else []
    return plan, bounds, " ".join(words)


def searched(fault: Fault) -> bool:
    """Whether a search reports the fault by its checker."""
    plan, bounds, _ = search_of(fault)
    with fault.planted():
        found = explore(plan, bounds, wanted=frozenset({(fault.checker, None)})).found
    return any(finding.finding.broken.rule == fault.checker for finding in found)


def measure(fault: Fault) -> dict[str, Any]:
    """Return the stored result of a fault."""
    options = bounce_of(fault, seed_of(fault))
    with fault.planted():
        others = [name for name in red(options) if name != fault.checker]
    search = ""
    if fault.searched is not None:
        search = search_of(fault)[2]
        if not searched(fault):
            raise LookupError(f"{fault.checker}: {search} finds nothing")
    return {
        "checker": fault.checker,
        "why": fault.why,
        "seed": options.seed,
        "bounce": command(options),
        "others": others,
        "search": search,
    }


@click.command(help=__doc__)
def main() -> None:
    """Measure all faults and write the results."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    stored["dimensions"] = []
    for fault in FAULTS:
        stored["dimensions"].append(measure(fault))
        click.echo(f"{stored['dimensions'][-1]}", err=True)
    STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
