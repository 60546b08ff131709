"""A local web application to talk to models: four views, and the same answers as a REST API."""
