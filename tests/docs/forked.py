"""Be a command of a page, in a process that was forked: `forked DIRECTORY PROGRAM ARGUMENTS`.

The program is a module, or a file whose name ends with .py.
"""

import os
import runpy
import sys


def main():
    """Run the program in the directory, as `python` does there."""
    _, directory, program, *arguments = sys.argv
    os.chdir(directory)
    os.environ.update(NO_COLOR="1", COLUMNS="100")
    sys.path.insert(0, directory)
    sys.stdout.reconfigure(line_buffering=True)
    sys.argv = [program, *arguments]
    if program.endswith(".py"):
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
