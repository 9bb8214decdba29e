"""What is going on: density, fan-out, load, recall and precision by windows of time, attraction points, forecasts."""
