"""The implementation of rapt.transformers."""
