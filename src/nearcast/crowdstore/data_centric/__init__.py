"""THYME-DCS: a crowd keeps publications and subscriptions in the cells of a grid that their tags hash to (THYME 5)."""
