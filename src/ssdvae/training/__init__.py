"""Training: from a corpus folder to a run folder."""
