"""All that experiments brought, as pages: a folder that needs no server, no network and no program to be read."""
