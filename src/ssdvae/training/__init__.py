"""From a corpus folder to a run folder."""
