"""BYPASS.KOM 6.4: mechanisms that exist side by side around attraction points."""
