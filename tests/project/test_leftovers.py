"""What a module of tests must end is found, what the session keeps is not (`tests.leftovers`)."""

import threading

from tests.leftovers import left_behind


def test_a_thread_that_goes_on_is_named_and_one_that_ends_is_waited_for():
    before = frozenset(thread.ident for thread in threading.enumerate())
    ending, going_on = threading.Event(), threading.Event()
    threads = [
        threading.Thread(target=ending.wait, name="ends", daemon=True),
        threading.Thread(target=going_on.wait, name="goes-on", daemon=True),
        threading.Thread(target=going_on.wait, name="embedded-broker", daemon=True),
    ]
    for thread in threads:
        thread.start()
    timer = threading.Timer(0.1, ending.set)
    timer.name = "ends-timer"
    timer.start()
    assert left_behind(before, wait_s=1.0) == ["goes-on"]
    going_on.set()
    for thread in threads:
        thread.join()
    assert left_behind(before) == []
