"""Holds what a mechanism promises against its exact law on small neighbouring histograms, and against its runs.

The laws come from the mechanism's own thresholds and tails (`discreet.laws`), so that a wrong predicate, scale
or threshold shows as a violation. The runs test samplers and code as well, but prove less.
"""

from discreet.audit.exact import audit, examine
from discreet.audit.findings import Audit, Divergence, Finding
from discreet.audit.neighbours import neighbours
from discreet.audit.sampled import Trial, trial

__all__ = ["Audit", "Divergence", "Finding", "Trial", "audit", "examine", "neighbours", "trial"]
