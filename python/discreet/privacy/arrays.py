"""Arrays of whole numbers that the caller gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy import ma  # here, because a fork during an import on first use would hang the child

from discreet.privacy.validation import require_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["whole_array"]


def whole_array(values: object) -> NDArray[np.integer] | None:
    """Return a list or array as a one-dimensional array of integers, or None if a cell is masked or no whole number.

    NumPy reads the number under a mask, and warns about a masked cell of a list.
    """
    try:
        require_array("values", values)
        kinds = {*map(type, values)} if isinstance(values, list | tuple) else set()
        if ma.is_masked(values) or any(issubclass(kind, ma.MaskedArray) for kind in kinds):
            return None
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):  # a ParameterError is a ValueError
        return None
    if array.ndim == 1 and array.size == 0:
        return np.zeros(0, np.int64)
    return array if array.ndim == 1 and array.dtype.kind in "iu" else None
