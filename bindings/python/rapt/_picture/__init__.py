"""Pictures of attention weights. `rapt.show` is all that is public of it."""

from .picture import Picture, show

__all__ = ["Picture", "show"]
