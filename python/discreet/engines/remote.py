"""The engines of clusters and warehouses, each imported for the first table that it holds."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.engines import ibis as ibis
    from discreet.engines import spark as spark
else:
    __getattr__, __dir__, __all__ = lazy(__name__, {"engines": "ibis spark"})
