"""The distance as a pandas UDF.  Spark reads the annotations of such a function, so here they are no texts."""

from typing import Any

import numpy as np
import pandas as pd

from nearcast.benchmark.workload import RADIUS
from nearcast.model.geometry import EARTH_RADIUS


def near(lat1: pd.Series, lon1: pd.Series, lat2: pd.Series, lon2: pd.Series) -> pd.Series:
    """Whether two places are within reach, by the haversine formula."""
    half_lat, half_lon = np.radians(lat2 - lat1) / 2, np.radians(lon2 - lon1) / 2
    h = np.sin(half_lat) ** 2 + np.cos(np.radians(lat1)) * np.cos(np.radians(lat2)) * np.sin(half_lon) ** 2
    within: Any = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(h)) <= RADIUS
    return within
