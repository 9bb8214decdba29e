"""Erasing people from what is recorded: everything that they wrote, and that says where or what they were.

==============  =====================================================================
``subject``     whose records they are, and what is left of a record without them
``journal``     the journal, stretch by stretch, and then what its file still holds of what was there
``parquet``     the same for Parquet files: the lake's, and what jobs made of it
==============  =====================================================================

Offsets of others stay as they are.  Every step leaves files that are there as a whole, and may be done again.
"""
