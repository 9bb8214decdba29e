"""Which of a host's local links events take: Wi-Fi or Bluetooth, exchanged while they flow."""
