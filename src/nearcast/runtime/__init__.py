"""Ports through which mechanisms act, hosts that are composed of them, and two halves that implement them.

A mechanism is plain synchronous code that reacts to what it is told and acts through ports (``ports``).  It never touches a
socket, an event loop or the wall clock; so the deterministic simulator (``simulation``) tests the shipped code, and the live
half (``live``) runs it unchanged.
"""
