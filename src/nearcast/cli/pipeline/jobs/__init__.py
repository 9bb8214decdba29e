"""One module for each job; what is slow to import is imported inside the functions."""
