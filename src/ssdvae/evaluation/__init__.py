"""Evaluation tasks, one module each, and what runs and summarizes them."""
