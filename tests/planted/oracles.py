"""What notices a planted fault besides tests: a simulated run whose broken rules are printed.

    simulate ...            a command of `rolling-bounce`, one seed
    explore ...             the same, one search
    runbook OLD STEP ...    a simulated group with bounces for which `simulate` has no options
    orders CHANGE [CRASHES] every order of a change of the topology (tests/probing/topologies)

In a runbook, members a, b and c start as release OLD, and `a>native` bounces one. `2.8.2/1.1` is a
release with upgrade.from, `+150` continues after 150 ms instead of waiting until the group is at
rest, `leads=ab` are the lanes that the coordinator chooses as leader whenever possible, `ends=11`
is the version that all members write at the end.

`python -m tests.planted.oracles COMMAND` prints the rules that a command breaks, as JSON.
"""

import json
import shlex
import sys
from collections.abc import Sequence
from typing import Final

from click.testing import CliRunner

from system_tests.cli.main import main as rolling_bounce
from system_tests.sim import World, WorldSetup, check_trace
from system_tests.sim.events import Settled, Unsettled
from system_tests.sim.liveness import check_resting_versions, check_settles
from tests.probing.topologies.model import Model

SETTLE_MS: Final = 600_000
WITHOUT_COUNT: Final = 2
"""The exit status of wrong usage."""


def broken_rules(command: str) -> list[str]:
    """Return the names of the rules that a command breaks, sorted, or the error that ends it.

    Raises:
        ValueError: there is no such command, or it cannot be run.
    """
    name, *words = shlex.split(command)
    if name in ("simulate", "explore"):
        return _of_the_product(name, words)
    if name not in ("runbook", "orders"):
        raise ValueError(f"there is no command {name}")
    try:
        return sorted(_runbook(words) if name == "runbook" else _orders(*words))
    except Exception as error:  # noqa: BLE001 code with a fault can raise anything
        return [f"raises {type(error).__name__}"]


def _of_the_product(name: str, words: Sequence[str]) -> list[str]:
    more = ["--workers", "1"] if name == "explore" else []
    ended = CliRunner().invoke(rolling_bounce, [name, *words, *more, "--format", "json"])
    if ended.exit_code == WITHOUT_COUNT:
        raise ValueError(ended.output)
    if not ended.stdout:
        return [f"raises {type(ended.exception).__name__}"]
    document = json.loads(ended.stdout)
    found = document["broken" if name == "simulate" else "findings"]
    return sorted({broken["rule"] for broken in found})


def _runbook(words: Sequence[str]) -> set[str]:
    """Return the rules that a runbook breaks."""
    settings = dict(word.split("=") for word in words if "=" in word)
    old, *steps = [word for word in words if "=" not in word]
    world = World(WorldSetup(seed=1, processes=3))
    world.member_ids.next_leaders = tuple(settings.get("leads", ""))
    for process in range(3):
        world.start(process, *_program(old))
    _settle(world)
    for step in steps:
        lane, _, program = step.partition(">")
        program, _, wait_ms = program.partition("+")
        process = ord(lane) - ord("a")
        world.stop(process)
        world.run_for(1_000)
        world.start(process, *_program(program))
        if wait_ms:
            world.run_for(int(wait_ms))
        else:
            _settle(world)
    broken = check_trace(world.trace, world.task_of) + check_settles(world.trace)
    if "ends" in settings:
        broken += check_resting_versions(world.trace, (int(settings["ends"]),))
    return {violation.rule for violation in broken}


def _program(word: str) -> tuple[str, str | None]:
    """Return a release and its upgrade.from."""
    release, _, upgrade_from = word.partition("/")
    return release, upgrade_from or None


def _settle(world: World) -> None:
    if world.run(until=world.is_settled, within_ms=SETTLE_MS):
        used = tuple((t.name, t.streams.state.used_version) for t in world.threads if t.is_up)
        world.record(Settled(world.now_ms, 0, "", used))
    else:
        world.record(Unsettled(world.now_ms, SETTLE_MS, "a member is not at rest"))


def _orders(change: str, crashes: str = "1") -> set[str]:
    """Return the first broken rule of all orders of a change with crashes.

    Both programs lead first, one after the other.
    """
    for leads in (1, 2):
        broken = Model(change, leads, crashes=int(crashes)).explore().broken
        if broken:
            return {broken[0].rule}
    return set()


if __name__ == "__main__":
    print(json.dumps(broken_rules(" ".join(sys.argv[1:]))))  # noqa: T201 a command
