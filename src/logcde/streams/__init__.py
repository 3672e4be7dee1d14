"""Observation streams: schema, container, ingest and query partitions."""

from logcde.streams.beside import beside as beside
from logcde.streams.beside import with_clock as with_clock
from logcde.streams.clock import Clock as Clock
from logcde.streams.clock import DatetimeClock as DatetimeClock
from logcde.streams.clock import NumericClock as NumericClock
from logcde.streams.clock import TimedeltaClock as TimedeltaClock
from logcde.streams.dropping import EachChannel as EachChannel
from logcde.streams.dropping import WholePoints as WholePoints
from logcde.streams.dropping import drop as drop
from logcde.streams.knots import Knots as Knots
from logcde.streams.partition import Calendar as Calendar
from logcde.streams.partition import Cuts as Cuts
from logcde.streams.partition import Partition as Partition
from logcde.streams.policies import Average as Average
from logcde.streams.policies import Drop as Drop
from logcde.streams.policies import Earliest as Earliest
from logcde.streams.policies import FirstStamp as FirstStamp
from logcde.streams.policies import Forbid as Forbid
from logcde.streams.policies import Keep as Keep
from logcde.streams.policies import KeepLast as KeepLast
from logcde.streams.schema import Schema as Schema
from logcde.streams.schema import Term as Term
from logcde.streams.streams import Streams as Streams
from logcde.streams.summary import Summary as Summary
