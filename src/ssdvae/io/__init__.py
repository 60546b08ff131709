"""Files: written atomically, read with limits, checked; the run folder; errors and progress."""
