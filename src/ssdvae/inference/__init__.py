"""Questions to a trained model, as functions of the model, documents and options."""
