"""Scenario files: what a run consists of, written by people, checked as a whole before anything moves."""
