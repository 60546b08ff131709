"""The embedded corpus: a generator of small scripts whose exact distribution is known."""
