import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probing.rebootstrap.config import (
    RebootstrapConfig,
    RebootstrapConfigError,
    RecoveryStrategy,
    rebootstrap_config,
)
from probing.rebootstrap.events import (
    REBOOTSTRAP_REQUIRED,
    BootstrapAgain,
    BootstrapResolved,
    ClockMoved,
    CloseAll,
    ConnectionLost,
    ConnectionReady,
    ConnectionStarted,
    GiveUpConnection,
    MetadataReceived,
    MetadataWanted,
    ReportRequired,
)
from probing.rebootstrap.machine import (
    NEVER_MS,
    REBOOTSTRAP_RULES,
    LinkState,
    NodeLink,
    next_wakeup_ms,
    rebootstrap_step,
    start_client,
)
from tests.probing.rebootstrap import well_formed

BOOT = ("boot:9092",)
BROKERS = ("a:1", "b:2")


def client(*events, **settings):
    """A client after ``events``, and the commands of the last one."""
    state = start_client(BOOT, RebootstrapConfig(**settings))
    return after(state, *events)


def after(state, *events):
    commands = ()
    for event in events:
        state, commands = rebootstrap_step(state, event)
        for value in (state, *commands):
            well_formed.check(value)
    return state, commands


def lost(now_ms, *nodes):
    return [ConnectionLost(now_ms=now_ms, node=node) for node in nodes]


def known(now_ms=0):
    return MetadataReceived(now_ms=now_ms, nodes=BROKERS)


def begins_again(commands):
    """The rule by which a client rebootstraps, or None; it closes all connections first."""
    if not commands:
        return None
    assert [type(command) for command in commands] == [CloseAll, BootstrapAgain]
    assert commands[0].rule == commands[1].rule
    return commands[1].rule


@pytest.mark.kip("1102-1", "core")
def test_the_strategy_is_rebootstrap_unless_set_to_none():
    assert RebootstrapConfig().strategy is RecoveryStrategy.REBOOTSTRAP
    assert rebootstrap_config({}).strategy is RecoveryStrategy.REBOOTSTRAP
    for text in ("none", "NONE"):
        asked = rebootstrap_config({"metadata.recovery.strategy": text})
        assert asked.strategy is RecoveryStrategy.NONE
    with pytest.raises(RebootstrapConfigError, match=r"is 'retry'; set one of rebootstrap, none"):
        rebootstrap_config({"metadata.recovery.strategy": "retry"})


@pytest.mark.kip("1102-2", "core")
def test_metadata_overdue_is_counted_from_the_first_attempt():
    assert RebootstrapConfig().trigger_ms == 300_000
    state, _ = client(known(), MetadataWanted(now_ms=1_000), MetadataWanted(now_ms=200_000))
    _, commands = after(state, ClockMoved(now_ms=301_000))
    assert begins_again(commands) is None
    _, commands = after(state, ClockMoved(now_ms=301_001))
    assert begins_again(commands) == "metadata is overdue"
    assert "no metadata for 300001 ms; the limit is 300000 ms" in commands[1].why


@pytest.mark.kip("1102-2", "core")
def test_an_answer_with_a_broker_stops_the_clock_and_one_without_does_not():
    state, _ = client(known(), MetadataWanted(now_ms=0))
    answered, _ = after(state, known(now_ms=10))
    assert answered.attempt_started_ms is None
    assert begins_again(after(answered, ClockMoved(now_ms=10**9))[1]) is None
    empty, _ = after(state, MetadataReceived(now_ms=10, nodes=()))
    assert empty.nodes == state.nodes
    _, commands = after(empty, ClockMoved(now_ms=300_001))
    assert begins_again(commands) == "metadata is overdue"


@pytest.mark.kip("1102-3", "core")
def test_it_begins_again_when_every_known_node_is_backing_off():
    state, commands = client(known(), *lost(1_000, "a:1"))
    assert begins_again(commands) is None
    _, commands = after(state, *lost(1_010, "b:2"))
    assert begins_again(commands) == "no node is available"
    assert "none of 2 known nodes" in commands[1].why


@pytest.mark.kip("1102-3", "core")
@pytest.mark.parametrize(
    "event",
    [
        ConnectionStarted(now_ms=1_005, node="b:2"),
        ConnectionReady(now_ms=1_005, node="b:2"),
        ClockMoved(now_ms=1_005),
    ],
)
def test_one_node_that_is_idle_or_connecting_or_connected_is_enough(event):
    _, commands = client(known(), event, *lost(1_010, "a:1"))
    assert begins_again(commands) is None


@pytest.mark.kip("1102-3", "core")
def test_a_node_whose_back_off_is_over_is_available():
    state, _ = client(known(), *lost(1_000, "a:1"))
    _, commands = after(state, *lost(1_060, "b:2"))
    assert begins_again(commands) is None
    over = state.nodes["a:1"].until_ms
    assert [state.nodes["a:1"].is_available(now) for now in (over - 1, over)] == [False, True]


@pytest.mark.kip("1102-4", "core")
def test_the_error_of_the_server_makes_it_begin_again_at_once():
    state, _ = client(known(), ConnectionReady(now_ms=1, node="a:1"))
    demand = MetadataReceived(now_ms=2, nodes=BROKERS, error_code=REBOOTSTRAP_REQUIRED)
    state, commands = after(state, demand)
    assert begins_again(commands) == "demanded by the server"
    assert not state.demanded
    assert state.resolving


def test_a_server_that_demands_it_for_ever_is_obeyed_ever_more_slowly():
    state = start_client(BOOT, RebootstrapConfig())
    times = []
    for now_ms in range(0, 10_000, 10):
        demand = MetadataReceived(now_ms=now_ms, nodes=(), error_code=REBOOTSTRAP_REQUIRED)
        state, commands = rebootstrap_step(state, demand)
        if begins_again(commands):
            times.append(now_ms)
            state, _ = after(state, BootstrapResolved(now_ms=now_ms, nodes=BOOT))
    gaps = [late - early for early, late in itertools.pairwise(times)]
    assert gaps == [50, 100, 200, 400, 800] + [1_000] * (len(gaps) - 5)


@pytest.mark.kip("1102-5", "core")
def test_with_none_a_demand_is_reported_once_and_nothing_is_closed():
    demand = MetadataReceived(now_ms=2, nodes=BROKERS, error_code=REBOOTSTRAP_REQUIRED)
    state, commands = client(known(), demand, strategy=RecoveryStrategy.NONE)
    assert [type(command) for command in commands] == [ReportRequired]
    assert "metadata.recovery.strategy=none forbids it" in commands[0].why
    assert after(state, ClockMoved(now_ms=3))[1] == ()


NODES = st.sampled_from((*BOOT, *BROKERS, "gone:9"))
SOME = st.lists(st.sampled_from((*BOOT, *BROKERS)), max_size=3, unique=True).map(tuple)
AT = st.integers(0, 400_000)
JITTERS = st.floats(0, 1)
EVENTS = st.lists(
    st.one_of(
        st.builds(MetadataWanted, now_ms=AT),
        st.builds(
            MetadataReceived,
            now_ms=AT,
            nodes=SOME,
            error_code=st.sampled_from([0, REBOOTSTRAP_REQUIRED]),
        ),
        st.builds(ConnectionStarted, now_ms=AT, node=NODES, jitter=JITTERS),
        st.builds(ConnectionReady, now_ms=AT, node=NODES),
        st.builds(ConnectionLost, now_ms=AT, node=NODES, jitter=JITTERS),
        st.builds(BootstrapResolved, now_ms=AT, nodes=SOME),
        st.builds(ClockMoved, now_ms=AT),
    ),
    max_size=30,
).map(lambda events: sorted(events, key=lambda event: event.now_ms))


@pytest.mark.kip("1102-5", "core")
@given(events=EVENTS)
def test_with_none_nothing_ever_makes_it_begin_again(events):
    state = start_client(BOOT, RebootstrapConfig(strategy=RecoveryStrategy.NONE))
    for event in events:
        state, commands = rebootstrap_step(state, event)
        assert not [c for c in commands if isinstance(c, CloseAll | BootstrapAgain)]
    assert state.rebootstraps == 0


@given(events=EVENTS)
def test_whatever_happens_two_rebootstraps_without_metadata_are_a_back_off_apart(events):
    state = start_client(BOOT, RebootstrapConfig())
    last_ms = None
    for event in events:
        state, commands = rebootstrap_step(state, event)
        if isinstance(event, MetadataReceived) and event.nodes and not event.error_code:
            last_ms = None
        if any(isinstance(command, BootstrapAgain) for command in commands):
            assert last_ms is None or event.now_ms - last_ms >= 50
            last_ms = event.now_ms


def test_while_the_names_are_looked_up_nothing_begins_again():
    state, _ = client(known(), *lost(1_000, *BROKERS))
    assert begins_again(after(state, ClockMoved(now_ms=10**7))[1]) is None


def test_a_lookup_that_took_longer_than_the_trigger_is_no_reason_to_begin_again():
    state, _ = client(known(), *lost(1_000, *BROKERS), trigger_ms=500)
    state, commands = after(state, BootstrapResolved(now_ms=9_000, nodes=BOOT))
    assert commands == ()
    assert begins_again(after(state, ClockMoved(now_ms=9_500))[1]) is None
    assert begins_again(after(state, ClockMoved(now_ms=9_501))[1]) == "metadata is overdue"


def test_after_a_lookup_it_knows_the_addresses_found_and_nothing_else():
    state, _ = client(known(), *lost(1_000, *BROKERS), BootstrapResolved(now_ms=1_001, nodes=BOOT))
    assert set(state.nodes) == set(BOOT)
    assert state.nodes[BOOT[0]].state is LinkState.IDLE
    assert (state.rebootstraps, state.resolving) == (1, False)


def test_an_address_found_again_stays_in_its_back_off():
    state, _ = client(*lost(1_000, *BOOT), BootstrapResolved(now_ms=1_001, nodes=BOOT))
    assert state.nodes[BOOT[0]].state is LinkState.BACKING_OFF
    assert state.nodes[BOOT[0]].failures == 1


def test_an_address_found_again_keeps_its_failures_and_so_its_back_off():
    again = ConnectionStarted(now_ms=1_060, node=BOOT[0])
    found = BootstrapResolved(now_ms=1_070, nodes=BOOT)
    state, _ = client(*lost(1_000, *BOOT), again, found)
    assert state.nodes == {BOOT[0]: NodeLink(failures=1)}
    state, _ = after(state, *lost(1_080, *BOOT))
    assert state.nodes[BOOT[0]].until_ms == 1_180


def test_no_address_found_is_tried_again_after_the_back_off():
    state, _ = client(*lost(1_000, *BOOT), BootstrapResolved(now_ms=1_001, nodes=()))
    assert next_wakeup_ms(state) == 1_050
    assert begins_again(after(state, ClockMoved(now_ms=1_049))[1]) is None
    assert begins_again(after(state, ClockMoved(now_ms=1_050))[1]) == "no node is available"


def test_a_connection_that_is_never_made_is_given_up_and_does_not_hold_the_trigger_back():
    """KIP-1102's motivation: under KIP-899, a hanging connection makes its node available."""
    stuck = ConnectionStarted(now_ms=1_020, node="a:1")
    state, commands = client(known(), MetadataWanted(now_ms=1_000), *lost(1_010, "b:2"), stuck)
    assert begins_again(commands) is None
    assert next_wakeup_ms(state) == 11_020
    state, commands = after(state, ClockMoved(now_ms=11_019))
    assert commands == ()
    state, commands = after(state, ClockMoved(now_ms=11_020))
    assert [type(command) for command in commands] == [GiveUpConnection]
    assert commands[0].node == "a:1"
    assert state.nodes["a:1"] == NodeLink(state=LinkState.BACKING_OFF, failures=1, until_ms=11_070)


def test_events_about_unknown_nodes_change_nothing():
    state, _ = client(known())
    for event in (*lost(5, "gone:9"), ConnectionReady(now_ms=5, node="gone:9")):
        assert after(state, event) == (state, ())


def test_a_client_with_time_limits_of_its_own_hands_them_in():
    state, _ = client(known(), ConnectionStarted(now_ms=5, node="a:1", limit_ms=70))
    assert state.nodes["a:1"].until_ms == 75
    late = ConnectionLost(now_ms=80, node="a:1", back_off_ms=900)
    assert after(state, late)[0].nodes["a:1"].until_ms == 980
    closed = ConnectionLost(now_ms=80, node="a:1", back_off_ms=0)
    assert after(state, closed)[0].nodes["a:1"] == NodeLink()


def test_a_connection_that_works_forgets_its_failures():
    state, _ = client(known(), *lost(0, "a:1"), *lost(100, "a:1"))
    assert state.nodes["a:1"].failures == 2
    state, _ = after(state, ConnectionReady(now_ms=300, node="a:1"))
    state, _ = after(state, MetadataReceived(now_ms=400, nodes=("a:1", "c:3")))
    assert state.nodes == {"a:1": NodeLink(state=LinkState.READY), "c:3": NodeLink()}


def test_it_wakes_for_what_is_next():
    state, _ = client(known())
    assert next_wakeup_ms(state) == NEVER_MS
    state, _ = after(state, MetadataWanted(now_ms=7))
    assert next_wakeup_ms(state) == 300_008
    forbidden = replace(state, config=RebootstrapConfig(strategy=RecoveryStrategy.NONE))
    assert next_wakeup_ms(forbidden) == NEVER_MS


def test_it_does_not_wake_for_overdue_metadata_before_the_next_rebootstrap_is_allowed():
    state, _ = client(*lost(1_000, *BOOT), trigger_ms=10)
    state, _ = after(state, BootstrapResolved(now_ms=1_001, nodes=BOOT))
    assert after(state, ClockMoved(now_ms=1_049)) == (state, ())
    assert next_wakeup_ms(state) == 1_050


@pytest.mark.kip("1102-8", "core")
def test_the_reconnect_back_off_doubles_from_50_to_1000_ms_and_varies_by_a_fifth():
    config = RebootstrapConfig()
    means = [config.reconnect_delay_ms(failures, 0.5) for failures in range(1, 8)]
    assert means == [50, 100, 200, 400, 800, 1_000, 1_000]
    assert [config.reconnect_delay_ms(1, jitter) for jitter in (0.0, 1.0)] == [40, 60]
    assert [config.reconnect_delay_ms(9, jitter) for jitter in (0.0, 1.0)] == [800, 1_000]


@pytest.mark.kip("1102-8", "core")
def test_the_set_up_timeout_grows_from_10_to_30_s_and_varies_by_a_fifth():
    config = RebootstrapConfig()
    assert [config.setup_timeout_ms(n, 0.5) for n in range(4)] == [10_000, 20_000, 30_000, 30_000]
    assert [config.setup_timeout_ms(0, jitter) for jitter in (0.0, 1.0)] == [8_000, 12_000]


@pytest.mark.kip("1102-8", "core")
def test_both_follow_the_settings():
    back_off = {"reconnect.backoff.ms": "10", "reconnect.backoff.max.ms": 40}
    ends = ("ms", "max.ms")
    setup = {f"socket.connection.setup.timeout.{end}": "5" for end in ends}
    config = rebootstrap_config(back_off | setup)
    assert [config.reconnect_delay_ms(n, 0.5) for n in (1, 2, 3, 4)] == [10, 20, 40, 40]
    assert [config.setup_timeout_ms(n, 0.0) for n in (0, 5)] == [5, 5]
    never = RebootstrapConfig(reconnect_backoff_ms=0, reconnect_backoff_max_ms=0)
    assert never.reconnect_delay_ms(3, 1.0) == 0


def test_the_last_row_always_holds_and_names_are_unique():
    names = [rule.name for rule in REBOOTSTRAP_RULES]
    assert names[-1] == "nothing to do"
    assert len(set(names)) == len(names)
