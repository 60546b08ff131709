"""Analysis of trained models: words, frames, clusters, transitions, groups of documents, ablations."""
