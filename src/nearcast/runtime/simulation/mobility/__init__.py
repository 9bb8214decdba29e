"""How people and vehicles move: random waypoint, random walk, streets, roads, recorded traces, or not at all.

Each model is a frozen value that is called with a stream of random numbers and the start of the run, and answers with the
legs of one life (``motion.MobilityModel``).
"""
