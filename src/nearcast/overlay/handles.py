"""Names of contexts on links."""

Handle = str
"""Of a context or an aggregate: opaque, and never used again.  That of a registered context is the router where it is registered, a slash, a number."""
