"""Predictions for many live series that survive crashes: stores, feeds, the engine, HTTP.

`logcde serve` is the way in. What may be replaced by other parts is here: a store, a feed, a publisher.
"""

from logcde.serve.feed import AbstractFeed as AbstractFeed
from logcde.serve.feed import AbstractPublisher as AbstractPublisher
from logcde.serve.feed import Delivery as Delivery
from logcde.serve.feed import partition_of as partition_of
from logcde.serve.live import ServedModel as ServedModel
from logcde.serve.service import Service as Service
from logcde.serve.service import ServiceOptions as ServiceOptions
from logcde.serve.sqlite import SqliteStore as SqliteStore
from logcde.serve.store import AbstractStore as AbstractStore
from logcde.serve.store import Group as Group
from logcde.serve.store import Lease as Lease
from logcde.serve.store import Retention as Retention
