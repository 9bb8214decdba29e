"""The radio of a phone: 802.11 medium access and reception under interference, event by event, in compiled kernels.

``profile`` says what a radio is like, ``modulation`` how often it errs, ``engine`` lets a crowd of them send and receive.
"""
