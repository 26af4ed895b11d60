"""Pictures of attention weights. Only `rapt.show` is public."""

from .picture import Picture, show

__all__ = ["Picture", "show"]
