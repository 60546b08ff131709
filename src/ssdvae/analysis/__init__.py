"""What has a model learned, and what does it make of new events?"""
