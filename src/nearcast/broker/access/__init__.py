"""Who may do what: authentication, rules, limits, certificates.

================  ================================================================================
``access``        the facade: a CONNECT becomes a ``Principal``, or is refused
``principal``     a client that was let in, and what it may do
``rules``         the rules of the settings; ``grants`` what one of them allows
``filters``       which topic filter covers which
``users``         the file of users; ``passwords`` verifies against it
``tokens``        signed tokens instead of a password; ``token_keys`` by which they are verified
``attempts``      failed log-ins, by address
``limits``        rates and quotas; ``callers`` those of HTTP, by user or address
``certificates``  TLS
================  ================================================================================
"""

from nearcast.broker.access.access import Access, AccessStatistics
from nearcast.broker.access.callers import Callers
from nearcast.broker.access.limits import Admission, ClientLimits, Quotas
from nearcast.broker.access.principal import Peer, Principal

__all__ = ["Access", "AccessStatistics", "Admission", "Callers", "ClientLimits", "Peer", "Principal", "Quotas"]
