"""What the name of the mechanism stands for."""

from __future__ import annotations

from nearcast.crowdstore.data_centric.mechanism import DataCentricStorage
from nearcast.crowdstore.data_centric.parameters import Settings
from nearcast.crowdstore.geographic.grid import CellGrid
from nearcast.crowdstore.nucleus import Nucleus
from nearcast.crowdstore.storage import Storage
from nearcast.model.geometry import Point


class DataCentric(Settings, frozen=True, kw_only=True):
    """Publications and subscriptions are kept in the cells of a grid that their tags hash to (THYME-DCS)."""

    def mechanism(self, nucleus: Nucleus) -> Storage:
        grid = CellGrid.between(Point(self.south, self.west), Point(self.north, self.east), self.side)
        return DataCentricStorage(nucleus, grid, self)
