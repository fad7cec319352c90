"""The table of the campaigns: what each of them tried and what failed, after the last test."""

import pytest

from support.soak import Tally

ROW = "soak"


@pytest.fixture
def tally(record_property):
    """Count the trials of a campaign, for the table at the end."""
    made = Tally()
    yield made
    for what, (tried, failed) in made.rows.items():
        # With the report of a test, which reaches the process that prints from wherever the test ran.
        record_property(ROW, [what, tried, failed])


def pytest_terminal_summary(terminalreporter):
    """Print the table."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    rows: dict[str, list[int]] = {}
    for report in reports:
        for name, value in getattr(report, "user_properties", ()):
            if name == ROW and report.when == "teardown":
                row = rows.setdefault(value[0], [0, 0])
                row[0] += value[1]
                row[1] += value[2]
    if rows:
        terminalreporter.section("campaigns: tried, failed")
        for what, (tried, failed) in rows.items():
            terminalreporter.write_line(f"{what:50} {tried:>9,} {failed:>7,}")
