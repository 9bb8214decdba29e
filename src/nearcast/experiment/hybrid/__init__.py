"""Events by way of the cloud, from host to host, or both (BYPASS.KOM 6.3.2 and 6.4.2)."""
