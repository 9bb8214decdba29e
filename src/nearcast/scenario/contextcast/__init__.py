"""Simulated overlays of routers, with the workloads of the Contextcast dissertation (4.5, 5.4).

============  =====================================================================
``ground``     the square on which everything stands
``network``    routers on a given tree, and what they have sent
``strategies`` ways of routing and reporting, by name
``walking``    people who walk through service areas, and report where they are (S1)
``attributes`` random contexts, and messages that ask for them (S2, S3)
``cycles``     so many updates and messages in each cycle (S2, S3)
``setups``     S1, S2 and S3
``audit``      who should have got a message, and did not
``at_once``    updates that need not be simulated hop by hop
``recording``  all of it on record, hop by hop
============  =====================================================================
"""
