"""What an operator does to the data of a broker.

=============  ================================================================================
``backup``     a copy of the data folder while the broker works on it; ``restore``: back again
``manifest``   what is in a backup, with checksums
``reload``     new settings for a broker that runs
``doctor``     is it well, and would it start again?
``aside``      folders that are there as a whole or not at all
=============  ================================================================================
"""
