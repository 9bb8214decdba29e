"""MQTT 3.1.1 beside MQTT 5: the same packets, other bytes.  The older MQTT 3.1 (MQIsdp) is refused."""

from nearcast.mqtt.codec3_reader import LEVEL, NO_EXPIRY, read, read_publish
from nearcast.mqtt.codec3_writer import publish, write

__all__ = ["LEVEL", "NO_EXPIRY", "publish", "read", "read_publish", "write"]
