"""Systems take turns, and medians are what is reported."""

from collections.abc import Callable

from nearcast.benchmark.timing import Course, take_turns


def ignore(_: str) -> None:
    pass


def test_systems_take_turns_after_a_warm_up() -> None:
    order: list[str] = []

    def step(name: str) -> Callable[[int], int]:
        def work(_: int) -> int:
            order.append(name)
            return 1

        return work

    courses = [Course(name, "batch_events_per_second", "1/s", step(name)) for name in "ab"]
    take_turns(courses, rounds=3, seconds=0.0, progress=ignore)
    assert order == ["a", "b"] * 4
    assert [len(course.rates) for course in courses] == [3, 3]


def test_each_step_gets_its_own_request_made_outside_the_measured_time() -> None:
    seen: list[str] = []

    def step(request: str) -> int:
        seen.append(request)
        return 1

    course = Course("a", "single_event_microseconds", "us", step, ready=lambda index: f"request {index}")
    course.run(0.0)
    course.run(0.0)
    assert seen == ["request 0", "request 1"]


def test_the_median_is_reported_and_rates_become_times_where_asked() -> None:
    course = Course("a", "single_event_microseconds", "us", lambda _: 1, {"batch": 1})
    course.rates = [1e6, 2e5, 1e5]
    measurement = course.measurement()
    assert measurement.value == 5.0
    assert measurement.parameters == {"batch": 1, "runs": 3, "spread": 4.5}
