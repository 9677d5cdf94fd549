"""The planner: the best layout of a budget by simulation, and a strategy for each token tier."""
