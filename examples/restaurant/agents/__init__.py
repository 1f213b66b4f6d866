"""Who answers the telephone."""

from .contact import Contact, TakeContact
from .host import Host
from .manager import Manager
from .takeaway import Takeaway

__all__ = ["Contact", "Host", "Manager", "TakeContact", "Takeaway"]
