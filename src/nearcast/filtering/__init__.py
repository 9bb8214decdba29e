"""Filter schemes: who should get an event, given subscribers that move (BYPASS.KOM 4.2, LCN 2016).

Each scheme has a client half and a broker half and a few messages between them.  Halves know no network: they are handed a way
to say something, and everything else - sessions, subscriptions, tags, events - is the same for all of them and lives in
``dissemination.cloud``.
"""
