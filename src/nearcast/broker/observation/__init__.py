"""Presence: clients are told of others who enter, leave, cross or stay in an area, or come near each other, if these let them."""
