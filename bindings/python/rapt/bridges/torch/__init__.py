"""The implementation of rapt.torch."""
