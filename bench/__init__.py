"""`python -m bench` prints the figures that the budgets are held against."""
