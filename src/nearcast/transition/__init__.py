"""Exchanging mechanisms while the system runs (BYPASS.KOM chapter 5.2), whatever the mechanisms do."""
