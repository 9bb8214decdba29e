"""Messages to those who were there, and to those who will be (Contextcast, chapter 6).

Sections and algorithms are those of the Contextcast dissertation; `docs/temporal.md` says where this differs, and why.
"""
