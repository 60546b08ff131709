"""From files of events to batches of tensors."""
