"""Experiments: what an operator does to an application, step by step.

Each returns if every member ran and every result was right. Members `a` and `b` share the tasks.
"""

from collections.abc import Callable, Mapping
from typing import Final

from system_tests.support.claims.application import WAIT_S, Application
from system_tests.support.claims.model import Claim, Run


def _beside(app: Application, claim: Claim, run: Run) -> None:
    """Half of a rolling bounce: old members, of which one is restarted as new."""
    _start_both(app, claim, run.old)
    app.stop("b")
    app.start("b", run.new, pin=run.pin, settings=claim.changed)
    app.process()
    app.process()


def _taken_over(app: Application, claim: Claim, run: Run) -> None:
    """As `_beside`; then the new member stops, and the old one takes over its tasks."""
    _beside(app, claim, run)
    app.stop("b")
    app.process()


def _bounce(app: Application, claim: Claim, run: Run) -> None:
    """Rolling bounces with the pin and without it, to the end."""
    _start_both(app, claim, run.old)
    for pin in dict.fromkeys((run.pin, "")):
        for name in ("b", "a"):
            app.stop(name)
            app.start(name, run.new, pin=pin, settings=claim.changed)
            app.process()


def _prepared_bounce(app: Application, claim: Claim, run: Run) -> None:
    """As `_bounce`, with the changelog topics of the new release's stores."""
    app.create_changelogs(claim.stores)
    _bounce(app, claim, run)


def _bounce_back(app: Application, claim: Claim, run: Run) -> None:
    """The way back with a pin: pin all, consume all, then the old release without state."""
    _start_both(app, claim, run.new, settings=claim.changed)
    for name in ("b", "a") if run.pin else ():
        app.stop(name)
        app.start(name, run.new, pin=run.pin, settings=claim.changed)
        app.process()
    app.until_consumed()
    for name in ("b", "a"):
        app.stop(name)
        app.delete_state(name)
        app.start(name, run.old)
        app.process()


def _replace(app: Application, claim: Claim, run: Run) -> None:
    """All members are stopped; the new release takes the state of the old one over."""
    _start_old(app, run)
    app.stop("a")
    _start_new(app, claim, run)
    app.process()


def _replace_unread(app: Application, claim: Claim, run: Run) -> None:
    """As `_replace`, and the new release reads what the old one wrote to internal topics."""
    app.start("a", run.old, settings={"commit.interval.ms": f"{int(WAIT_S * 1000)}"})
    app.process(is_committed=False)
    app.stop("a")
    app.rewind_internal_topics()
    _start_new(app, claim, run)
    app.process()


def _markers_left(app: Application, _: Claim, run: Run) -> None:
    """Members start where nothing but transaction markers follows, and get no new input."""
    app.start("a", run.old)
    app.process(is_committed=False)
    app.stop("a")
    app.rewind_internal_topics(to_last=True)
    app.start("a", run.new)
    app.check_last_markers()


def _start_new(app: Application, claim: Claim, run: Run) -> None:
    """A member of the new release starts, with its settings."""
    app.start("a", run.new, pin=run.pin, settings=claim.changed)
    app.process()


def _start_old(app: Application, run: Run) -> None:
    app.start("a", run.old)
    app.process()


def _reset_and_return(app: Application, claim: Claim, run: Run) -> None:
    """All members are stopped, the application is reset, and the old release starts."""
    _start_new(app, claim, run)
    app.stop("a")
    app.reset("a")
    _start_old(app, run)


def _return(app: Application, claim: Claim, run: Run) -> None:
    """All members are stopped; the old release takes over what the new one left."""
    _start_new(app, claim, run)
    app.stop("a")
    _start_old(app, run)


def _kill_and_return(app: Application, claim: Claim, run: Run) -> None:
    """The member is killed; the old release takes over what the new one left."""
    _start_new(app, claim, run)
    app.kill("a")
    _start_old(app, run)


def _return_without_state(app: Application, claim: Claim, run: Run) -> None:
    """All members are stopped; the old release starts without a state directory."""
    _start_new(app, claim, run)
    app.stop("a")
    app.delete_state("a")
    _start_old(app, run)


def _restart_static(app: Application, run: Run, *, back: bool, waits: bool) -> None:
    before, after = (run.new, run.old) if back else (run.old, run.new)
    for name in ("a", "b"):
        app.start(name, before, settings=_static(name), leaves_group=False)
    app.process()
    for name in ("b", "a"):
        app.stop(name)
        if waits:
            app.until_expired(name)
            app.delete_state(name)  # an earlier RocksDB may not open it
        app.start(name, after, settings=_static(name), leaves_group=False)
        app.process()


def _static_up(app: Application, _: Claim, run: Run) -> None:
    """Static members are restarted as new ones, within their sessions."""
    _restart_static(app, run, back=False, waits=False)


def _static_back(app: Application, _: Claim, run: Run) -> None:
    """Static members are restarted as old ones, within their sessions."""
    _restart_static(app, run, back=True, waits=False)


def _static_back_later(app: Application, _: Claim, run: Run) -> None:
    """Static members are started as old ones, without state, when their sessions have expired."""
    _restart_static(app, run, back=True, waits=True)


def _start_both(
    app: Application, _: Claim, release: str, *, settings: Mapping[str, str] | None = None
) -> None:
    for name in ("a", "b"):
        app.start(name, release, settings=settings)
    app.process()


def _static(name: str) -> Mapping[str, str]:
    return {"group.instance.id": name}


Experiment = Callable[[Application, Claim, Run], None]

EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    "beside": _beside,
    "taken over": _taken_over,
    "bounce": _bounce,
    "prepared bounce": _prepared_bounce,
    "bounce back": _bounce_back,
    "replace": _replace,
    "replace unread": _replace_unread,
    "markers left": _markers_left,
    "reset and return": _reset_and_return,
    "return": _return,
    "kill and return": _kill_and_return,
    "return without state": _return_without_state,
    "start new": _start_new,
    "static up": _static_up,
    "static back": _static_back,
    "static back later": _static_back_later,
}
"""By the name that a claim gives."""
