"""The evaluation of the Contextcast dissertation: E1 to E9."""
