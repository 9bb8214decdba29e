"""The evaluation of THYME (6): a crowd at a football final, without infrastructure."""
