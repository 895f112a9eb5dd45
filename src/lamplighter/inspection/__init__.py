"""What a program and its operators can ask of the store, and set in it, from Python."""

from lamplighter.inspection.jobs import DeadLetters, Jobs
from lamplighter.inspection.settings import Queues, Tenants, Types, Workers

__all__ = ["DeadLetters", "Jobs", "Queues", "Tenants", "Types", "Workers"]
