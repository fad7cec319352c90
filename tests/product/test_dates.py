from datetime import UTC, datetime

import pytest

from windowsill.dates import last_date, time_spans

pytestmark = pytest.mark.unit

NOW = datetime(2023, 6, 14, 15, 30, tzinfo=UTC).timestamp()
"""A Wednesday."""


def told(question: str) -> list[tuple[str, str]]:
    return [tuple(f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}" for at in span) for span in time_spans(question, NOW)]


@pytest.mark.parametrize(
    ("question", "start", "stop"),
    [
        ("What happened in May 2023?", "2023-05-01", "2023-06-01"),
        ("What happened on 8 May, 2023?", "2023-05-08", "2023-05-09"),
        ("What happened on May 8th?", "2023-05-08", "2023-05-09"),
        ("What happened on the 8th of May 2022?", "2022-05-08", "2022-05-09"),
        ("the log of 2023-05-08", "2023-05-08", "2023-05-09"),
        ("in December", "2022-12-01", "2023-01-01"),
        ("on 20 June", "2022-06-20", "2022-06-21"),
        ("during 2021", "2021-01-01", "2022-01-01"),
        ("what did I say yesterday?", "2023-06-13", "2023-06-14"),
        ("today", "2023-06-14", "2023-06-15"),
        ("last week", "2023-06-05", "2023-06-12"),
        ("this week", "2023-06-12", "2023-06-19"),
        ("last month", "2023-05-01", "2023-06-01"),
        ("last year", "2022-01-01", "2023-01-01"),
        ("three days ago", "2023-06-11", "2023-06-12"),
        ("2 weeks ago", "2023-05-29", "2023-06-05"),
        ("18 months ago", "2021-12-01", "2022-01-01"),
        ("last Wednesday", "2023-06-07", "2023-06-08"),
        ("on Monday", "2023-06-12", "2023-06-13"),
        ("昨日は何をした", "2023-06-13", "2023-06-14"),
        ("一昨日の会議", "2023-06-12", "2023-06-13"),
        ("先週の話", "2023-06-05", "2023-06-12"),
        ("去年の夏", "2022-01-01", "2023-01-01"),
        ("5月8日の予定", "2023-05-08", "2023-05-09"),
        ("2022年5月", "2022-05-01", "2022-06-01"),
        ("２０２２年の計画", "2022-01-01", "2023-01-01"),
        ("3日前", "2023-06-11", "2023-06-12"),
        ("2週間前", "2023-05-29", "2023-06-05"),
    ],
)
def test_a_time_in_a_question_is_understood(question, start, stop):
    """Calendar dates and those relative to now, in English and Japanese, are spans of days."""
    assert told(question) == [(start, stop)]


@pytest.mark.parametrize(
    "question", ["may I ask", "it may rain", "version 2023", "on 31 June", "13月", "march on", "99999 weeks ago"]
)
def test_what_is_no_date_is_none(question):
    """Words that look like a month and days that do not exist name no time."""
    assert told(question) == []


def test_a_time_out_of_the_calendar_is_no_time():
    """A clock that shows nonsense breaks nothing."""
    assert time_spans("yesterday", 1e300) == []
    assert time_spans("999 years ago", 0.0) != []


def test_yesterday_of_the_first_day_is_answered():
    """Counting back from the beginning of the calendar stays inside it."""
    assert time_spans("yesterday", datetime(1, 1, 1, tzinfo=UTC).timestamp()) == []


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2027-03-05", "2027-03-05"),
        ("2027-03-05T10:00Z", "2027-03-05"),
        ("5 March 2027", "2027-03-05"),
        ("on Mar 5, 2027 or 2027/04/06", "2027-04-06"),
        ("until 9999-12-31", "9999-12-31"),
        ("2027 年 3 月 5 日", "2027-03-05"),
        ("２０２７年", None),
        ("2027-02-30", None),
        ("March 5", None),
    ],
)
def test_the_last_date_needs_a_year_and_has_to_exist(text, date):
    """No clock is read to complete a date."""
    assert last_date(text) == date
