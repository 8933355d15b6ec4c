"""Verifies a guarantee with the exact output distribution on small neighbouring histograms, and with runs.

The exact laws come from the mechanism's own thresholds and tails (`discreet.laws`), so a wrong predicate, scale or
threshold shows as a violation. Releases of the mechanism are compared with these laws, so a sampler or a release that
does not follow its law shows as a misfit.
"""

from discreet.audit.exact import audit
from discreet.audit.exact import examine as examine
from discreet.audit.findings import Audit, Divergence, Finding, Misfit
from discreet.audit.neighbours import neighbours as neighbours
from discreet.audit.sampled import Trial, trial

__all__ = ["Audit", "Divergence", "Finding", "Misfit", "Trial", "audit", "trial"]
