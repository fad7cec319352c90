"""Metrics: what is counted, under which names, and what it costs."""

from threading import Thread
from urllib.request import urlopen

import pytest

from support.telemetry import listening
from windowsill import telemetry
from windowsill.messages import Usage
from windowsill.models import PriceList, find, record_usage
from windowsill.telemetry import names

pytestmark = pytest.mark.unit

USED = Usage(input=100, cache_read=800, cache_write=100, output=50)


@pytest.fixture
def heard():
    with listening() as found:
        yield found


def values(heard, metric, by):
    """The counts of a metric by one of its attributes."""
    return {point.attributes[by]: point.value for point in heard.points(metric)}


def test_a_counter_adds_up(heard):
    """For each set of attributes by itself."""
    telemetry.count(names.FOLDS, strategy="mask")
    telemetry.count(names.FOLDS, 2, strategy="mask")
    telemetry.count(names.FOLDS, strategy="summarize")
    assert values(heard, "windowsill.folds", "windowsill.strategy") == {"mask": 3, "summarize": 1}


def test_a_histogram_has_the_bounds_that_the_conventions_state(heard):
    """So that figures of several programs can be put together."""
    telemetry.record(names.TOKEN_USAGE, 5)
    (point,) = heard.points("gen_ai.client.token.usage")
    assert point.explicit_bounds[:3] == (1, 4, 16)
    assert point.explicit_bounds[-1] == 67_108_864


def test_a_metric_of_somebody_elses_can_be_told_too(heard):
    """A plug-in may count under a name of its own."""
    telemetry.count("acme.things", 3)
    assert [point.value for point in heard.points("acme.things")] == [3]


def test_usage_is_told_with_the_whole_prompt_as_input(heard):
    """As the conventions have it: cached tokens are input tokens."""
    telemetry.record_usage(USED, model="gpt-5", provider="openai")
    sums = {point.attributes["gen_ai.token.type"]: point.sum for point in heard.points("gen_ai.client.token.usage")}
    assert sums == {"input": 1_000, "output": 50}


def test_tokens_are_also_counted_by_what_is_paid_for_them(heard):
    """Four kinds that do not overlap; one that did not occur is no series."""
    telemetry.record_usage(USED, model="gpt-5", provider="openai")
    assert values(heard, "windowsill.tokens", "windowsill.type") == {
        "input": 100,
        "cache_read": 800,
        "cache_write": 100,
        "output": 50,
    }


def test_the_cache_hit_share_is_of_the_whole_prompt(heard):
    """800 of 1,000."""
    telemetry.record_usage(USED, model="gpt-5", provider="openai")
    (point,) = heard.points("windowsill.cache.hit_ratio")
    assert (point.sum, point.count) == (0.8, 1)


def test_usage_names_model_and_provider_but_no_session(heard):
    """Every session would be a time series of its own."""
    telemetry.record_usage(USED, model="gemini-2.5-pro", provider="google")
    (point,) = heard.points("windowsill.cache.hit_ratio")
    assert dict(point.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gemini-2.5-pro",
        "gen_ai.provider.name": "gcp.gemini",
    }


def test_the_cost_is_that_of_the_price_list(heard):
    """Each kind of token at its own price, in dollars."""
    listed = PriceList(input=1.0, output=10.0, cache_read=0.1, cache_write=2.0)
    model = find("acme-1", window=1_000, overrides={"acme-1": {"prices": listed}})
    record_usage(USED, model)
    (point,) = heard.points("windowsill.cost")
    assert point.value == pytest.approx((100 * 1.0 + 50 * 10.0 + 800 * 0.1 + 100 * 2.0) / 1_000_000)


def test_where_no_price_is_known_no_cost_is_told(heard):
    """A relative price is no money."""
    record_usage(USED, find("acme-2", window=1_000))
    assert heard.points("windowsill.cost") == []
    assert len(heard.points("windowsill.cache.hit_ratio")) == 1


def test_a_model_that_nobody_knows_is_counted_without_its_cost(heard):
    """By the name it was asked under."""
    record_usage(USED, "nobody-knows-this-one", "openai")
    (point,) = heard.points("windowsill.cache.hit_ratio")
    assert point.attributes["gen_ai.request.model"] == "nobody-knows-this-one"
    assert heard.points("windowsill.cost") == []


class Broken:
    """A meter provider whose counters fail."""

    def __init__(self):
        self.values = []

    def get_meter(self, *_):
        return self

    def create_counter(self, *_, **__):
        raise RuntimeError("no counter for you")

    def create_histogram(self, *_, **__):
        return self

    def record(self, value, *_):
        self.values.append(value)


def test_a_meter_that_raises_costs_nothing_but_its_own_figures():
    """It gets the ones it can take."""
    broken = Broken()
    telemetry.use(meter_provider=broken)
    try:
        telemetry.count(names.FOLDS)
        telemetry.record(names.CACHE_HIT_RATIO, 0.5)
    finally:
        telemetry.use()
    assert broken.values == [0.5]


def test_a_meter_that_raises_takes_nothing_from_the_others():
    """A scrape has the figure that it refused."""
    telemetry.use(meter_provider=Broken())
    try:
        with telemetry.serve_metrics(0) as serving:
            telemetry.count(names.FOLDS)
            with urlopen(f"http://127.0.0.1:{serving.port}/metrics", timeout=60) as answer:
                scraped = answer.read().decode()
    finally:
        telemetry.use()
    assert "windowsill_folds_total 1.0" in scraped


def test_figures_of_many_threads_are_all_counted(heard):
    """While somebody collects."""

    def work():
        for _ in range(500):
            telemetry.count(names.FOLDS)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        heard.points("windowsill.folds")
    for thread in threads:
        thread.join()
    assert [point.value for point in heard.points("windowsill.folds")] == [2_000]


def test_a_figure_is_told_with_an_example_of_the_trace_it_is_from(heard):
    """That of the innermost span."""
    with telemetry.span("compose", timed=names.COMPOSE_DURATION), telemetry.span("fold"):
        telemetry.count(names.FOLDS)
    (point,) = heard.points("windowsill.folds")
    (example,) = point.exemplars
    assert example.span_id == heard.span("fold").context.span_id


def test_a_span_that_is_timed_is_measured_where_nobody_traces():
    """Figures alone are enough for many."""
    with listening() as heard:
        telemetry.use(meter_provider=heard.meters)
        with telemetry.span("compose", timed=names.COMPOSE_DURATION, session="s", model="m"):
            pass
        (point,) = heard.points("windowsill.compose.duration")
        assert dict(point.attributes) == {"gen_ai.request.model": "m"}
        assert heard.spans == []
