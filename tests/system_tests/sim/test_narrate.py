"""The trace: one line per event, seven symbols, the same text for the same seed."""

from system_tests.sim import BounceOptions, outcome_lines, run_bounce
from system_tests.sim.events import Ended, Happened, Rejoined, Settled, Started
from system_tests.sim.narrate import trace_lines

TRACE = (
    Started(0, "a", "3.9.1", None, (11,), is_native=False, latest_version=11),
    Started(5, "b", "2.3.1", "1.1", (1, 2, 3, 4), is_native=False, latest_version=4),
    Rejoined(10, "a", "version", "a member is not upgraded yet", 11, 4),
    Rejoined(11, "a", "version", "every member is upgraded", 4, 11),
    Rejoined(12, "b", "follow-up", "follow-up is due", 4, 4),
    Happened(13, "", "the coordinator moves"),
    Settled(14, 1, "a", (("a", 11), ("b", 4))),
    Ended(15, "b", "stop", failed=False),
    Ended(16, "a", "of old age", failed=True),
)


def test_each_happening_has_its_symbol_in_the_lane_of_its_thread():
    legend, header, *lines = trace_lines(("a", "b"), TRACE)
    assert legend.startswith("* leads")
    assert header == "     ms  gen   a  b   event"
    assert lines == [
        "      0        +  #   start, release 3.9.1 (latest v11)",
        "      5        .  +   start, release 2.3.1 (latest v4, upgrade.from 1.1)",
        "     10        v  .   downgrade v11 -> v4, rejoin  a member is not upgraded yet",
        "     11        ^  .   upgrade v4 -> v11, rejoin  every member is upgraded",
        "     12        .  .   b: rejoin at v4  follow-up is due",
        "     13        .  .   the coordinator moves",
        "     14        .  .   settled a:v11 b:v4",
        "     15        .  !   stop",
        "     16        !  #   dies: of old age",
    ]


def test_the_trace_of_a_bounce_has_its_generations_and_its_verdict():
    outcome = run_bounce(BounceOptions(seed=2, old="2.8.2", new="3.9.1"))
    text = "\n".join(outcome_lines(outcome))
    assert "join a:v9/9 b:v9/9 c:v9/9" in text
    assert "assign v9 common v11  lowest used version" in text
    assert "upgrade v9 -> v11, rejoin  every member is upgraded" in text
    assert text.endswith("good: 2.8.2 -> 3.9.1, seed 2")


def test_a_failure_names_the_rule_history_and_the_command_that_replays_it():
    options = BounceOptions(seed=0, old="1.1.1", new="2.3.1", force=True)
    outcome = run_bounce(options)
    *_, broken, invalid, replay = outcome_lines(outcome)
    assert broken.startswith("broken at ")
    assert "upgrade.from=1.1" in "\n".join(outcome_lines(outcome))
    assert invalid.startswith("bad: 1.1.1 -> 2.3.1, seed 0")
    assert replay == (
        "replay: rolling-bounce simulate --seed 0 --from 1.1.1 --to 2.3.1 --members 3 --threads 1"
        " --partitions 6 --force"
    )


def test_the_replay_leaves_drawn_what_was_drawn():
    faults = frozenset({"drop", "crash"})
    outcome = run_bounce(BounceOptions(seed=4, static=True, faults=faults))
    assert outcome.replay == (
        "rolling-bounce simulate --seed 4 --members 3 --threads 1 --partitions 6 --static"
        " --faults crash,drop"
    )
