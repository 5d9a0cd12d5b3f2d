"""Records of the log that a test may compare: those of one package."""


def records_of(caplog, package="assignor"):
    """Return what the package has logged; a client of an earlier test may log while collected."""
    return [each for each in caplog.records if each.name.startswith(package)]
