"""The simulated half of the runtime: virtual time, networks, people who move, and the recorder of all that happens."""
