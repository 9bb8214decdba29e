"""Traces of messages, from the publish to the acknowledgement of the last receiver (docs/how-to/trace-a-message.md).

============  ===================================================================================
``settings``  which messages, and where the spans go
``tracer``    which message is traced, and the spans of one
``exporting`` OpenTelemetry's SDK, which is loaded only if something is traced
============  ===================================================================================
"""
