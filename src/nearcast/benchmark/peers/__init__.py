"""The systems that people use today for the same question: who is within 150 metres of here?"""

from nearcast.benchmark.peers.peer import Pairs, Peer
from nearcast.benchmark.peers.postgis import PostGIS
from nearcast.benchmark.peers.redis_geo import RedisGeo
from nearcast.benchmark.peers.sedona import Sedona
from nearcast.benchmark.peers.strtree import ShapelyTree

PEERS: tuple[type[Peer], ...] = (ShapelyTree, Sedona, RedisGeo, PostGIS)

__all__ = ["PEERS", "Pairs", "Peer", "PostGIS", "RedisGeo", "Sedona", "ShapelyTree"]
