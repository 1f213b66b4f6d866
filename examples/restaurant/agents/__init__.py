"""Who answers the telephone."""

from .host import Host
from .manager import Manager

__all__ = ["Host", "Manager"]
