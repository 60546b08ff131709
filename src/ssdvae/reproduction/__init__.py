"""The paper's tables, run anew: the grid of runs behind them, the tables, and what becomes of its claims."""
