"""What a model says of given events: their frames, and how they go on."""
