"""Events that spread from host to host (BYPASS.KOM 6.3 and A.3)."""
