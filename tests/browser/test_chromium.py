"""Without a browser the tests of the page are left out, but not where it is decided what lands."""

from __future__ import annotations

import pytest
from tests.browser.conftest import there_is


def test_a_missing_browser_is_a_failure_in_continuous_integration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no Chromium"):
        there_is(None)
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="no Chromium"):
        there_is(None)
    assert there_is("/usr/bin/chromium") == "/usr/bin/chromium"
