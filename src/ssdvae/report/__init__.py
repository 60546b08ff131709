"""One page about one or more runs."""
