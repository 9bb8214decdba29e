"""Ten thousand moving points are drawn smoothly, also by a browser that has no graphics processor."""

from __future__ import annotations

from typing import Any, Final

from tests.browser.conftest import Watched
from tests.browser.moving_points import moving_points

MOST_MS: Final = 50.0
FRAMES: Final = 60
TRIES: Final = 8
"""A machine with other work to do takes its time for that too: the best of so many windows is what the page needs."""

MEASURE: Final = f"""async () => {{
  const {{ frames }} = await import("./frames.js");
  frames.clear();
  while (frames.summary().frames < {FRAMES}) await new Promise(requestAnimationFrame);
  return frames.summary();
}}"""
PLACES: Final = """async () => {
  const { map } = await import("./main.js");
  const now = performance.now();
  return [...Array(50).keys()].map((index) => [map.crowd.x(index, now), map.crowd.y(index, now)]);
}"""


def test_ten_thousand_moving_points_take_less_than_fifty_milliseconds_a_frame(pages: Watched) -> None:
    pages.expect("404")  # this server has a map and nothing else
    with moving_points(10_000) as server:
        page = pages.open(server.url)
        page.wait_for_selector("html[data-drawn=true]")
        windows = []
        before = page.evaluate(PLACES)
        for _ in range(TRIES):
            windows.append(page.evaluate(MEASURE))
            say(windows[-1])
            if windows[-1]["interval"]["median"] < MOST_MS / 2:
                break
        after = page.evaluate(PLACES)
        shown = page.evaluate("""async () => (await import("./main.js")).map.crowd.count""")
        page.close()
    assert shown == 10_000
    assert sum(a != b for a, b in zip(before, after, strict=True)) >= 45, "they do not move"
    assert min(window["interval"]["median"] for window in windows) < MOST_MS
    assert min(window["cost"]["median"] for window in windows) < MOST_MS


def say(measured: dict[str, Any]) -> None:
    interval, cost = measured["interval"], measured["cost"]
    print(
        f"\n10,000 points, {measured['frames']} frames: interval {interval['median']:.1f} ms (p95 {interval['p95']:.1f}),"
        f" drawing {cost['median']:.1f} ms (p95 {cost['p95']:.1f})"
    )
