"""Messages to one host, over several hops: proactive distance-vector routing (DSDV: Perkins and Bhagwat, 1994)."""
