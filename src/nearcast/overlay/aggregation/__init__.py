"""Few coarse contexts instead of the many that came over one link (Contextcast 4.4.4).

================  ==================================================================================
``thresholds``     how alike two must be to be merged: always the same, farther less, or self-tuning
``candidates``     the aggregates of a link in columns, and how similar each is to a new context
``joins``          what several contexts make together, also when one of them leaves
``aggregates``     adding, changing and removing contexts, and what the neighbours are to be told
================  ==================================================================================
"""
