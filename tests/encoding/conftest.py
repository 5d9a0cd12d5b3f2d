"""Register the summary of the golden vectors, unless the root conftest did."""

from tests.encoding import golden_summary


def pytest_configure(config):
    if not config.pluginmanager.is_registered(golden_summary):
        config.pluginmanager.register(golden_summary, golden_summary.__name__)
