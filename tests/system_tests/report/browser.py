"""A headless browser that draws a page."""

import os
import shutil
import subprocess

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--window-size=1400,900",
    "--virtual-time-budget=8000",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # no network, whatever the page may ask for
)


def browser():
    """The browser's path; without one the test is skipped, in CI it fails."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None and os.environ.get("CI"):
        pytest.fail("no browser to look at the report with: run .ci/browser")
    if found is None:
        pytest.skip("no Chromium to look at the report with: run .ci/browser")
    return found


def drawn(page, folder):
    """DOM and console of a page in a headless browser."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [browser(), *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
