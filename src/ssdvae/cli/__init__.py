"""The command line: flags, printing, progress on a terminal. No logic."""
