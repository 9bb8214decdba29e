"""Events from host to host, without infrastructure (BYPASS.KOM 4.3.1)."""
