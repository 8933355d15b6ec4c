"""Verifies a guarantee by computing the exact law of a mechanism on small neighbouring histograms, and by runs.

The laws come from the mechanism's own thresholds and tails (`discreet.laws`), so that a wrong predicate, scale
or threshold shows as a violation. Releases of the mechanism itself are compared with these laws, so that a sampler
or a release that does not follow its law shows as a misfit.
"""

from discreet.audit.exact import audit, examine
from discreet.audit.findings import Audit, Divergence, Finding, Misfit
from discreet.audit.neighbours import neighbours
from discreet.audit.sampled import Trial, trial

__all__ = ["Audit", "Divergence", "Finding", "Misfit", "Trial", "audit", "examine", "neighbours", "trial"]
