"""Peak resident memory of this process and of those that it started; Linux only."""

import os
from pathlib import Path

_PROC = Path("/proc")


def family():
    """Numbers of this process and all below it, with their commands."""
    children = {}
    names = {os.getpid(): "driver"}
    for folder in _PROC.glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue  # it has just ended
        name, _, rest = stat.partition("(")[2].rpartition(")")
        children.setdefault(int(rest.split()[1]), []).append((int(folder.name), name))
    todo = [os.getpid()]
    while todo:
        for number, name in children.get(todo.pop(), ()):
            names[number] = name
            todo.append(number)
    return names


def forget_peaks():
    """Start anew: the peak of each process is what it holds now."""
    for number in family():
        try:
            (_PROC / str(number) / "clear_refs").write_text("5")
        except OSError:
            continue


def peaks_mb():
    """Peaks since then: of the JVM, of all Python workers together, of the driver's Python."""
    found = {"jvm": 0, "workers": 0, "driver": 0}
    for number, name in family().items():
        try:
            status = (_PROC / str(number) / "status").read_text()
        except OSError:
            continue
        peak = next((line for line in status.split("\n") if line.startswith("VmHWM")), "VmHWM 0")
        kind = {"java": "jvm", "driver": "driver"}.get(name, "workers")
        found[kind] += int(peak.split()[1]) // 1024
    return found
