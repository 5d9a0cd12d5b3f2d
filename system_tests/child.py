"""Run a module in a process that ends with its parent: `python -m system_tests.child MODULE`.

The parent holds the other end of the standard input, through which the module gets what the parent
writes. When the parent ends, however, the module's input ends, and soon after it the process, even
if the module is still being imported.
"""

import os
import runpy
import sys
import threading
import time
from contextlib import suppress

_CLEAN_END_S = 0.4
_READ_SIZE = 4096


def main() -> None:
    """Run the module that the first argument names."""
    module = sys.argv.pop(1)
    outer = os.dup(0)
    inner, writes = os.pipe()
    os.dup2(inner, 0)
    os.close(inner)
    threading.Thread(target=_pass_on, args=(outer, writes), daemon=True).start()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _pass_on(outer: int, writes: int) -> None:
    """Pass the input on to the module; end the process after its end."""
    with suppress(OSError):
        while read := os.read(outer, _READ_SIZE):
            os.write(writes, read)
    os.close(writes)
    time.sleep(_CLEAN_END_S)
    os._exit(1)


if __name__ == "__main__":
    main()
