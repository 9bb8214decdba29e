"""Is a broker well, and would it start again?  Looked at from outside, without disturbing the one that runs.

================  =============================================================
``findings``      what was looked at, and what was found
``examination``   all checks, one after the other
``machine``       disk, clock, ports
``secrets``       certificates, keys, users
``kept``          journal and identities; ``lake``: its files
================  =============================================================
"""
