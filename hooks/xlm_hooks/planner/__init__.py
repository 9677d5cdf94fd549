"""The first planner: residents by what they are, the rest by strategies and rules of thumb."""
