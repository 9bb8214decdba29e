"""Who addressed, observed or commanded whom: a log of its own, in which nothing can be changed without being noticed.

=============  =====================================================================
``chain``      entries, how they hang together, how they are read and verified
``audit``      what the broker writes, and when
=============  =====================================================================
"""

from nearcast.broker.audit.audit import Audit, AuditStatistics

__all__ = ["Audit", "AuditStatistics"]
