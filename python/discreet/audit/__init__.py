"""Verification of a guarantee with exact output distributions on small neighbouring histograms, and with runs.

`discreet.laws` computes the exact distributions from the mechanism's own thresholds and tails. So a wrong threshold or
noise scale is reported as a violation of the guarantee. A run is one release. If the runs of a mechanism do not follow
the exact distribution, the audit reports a misfit.
"""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.audit.exact import audit as audit
    from discreet.audit.exact import examine as examine
    from discreet.audit.findings import Audit as Audit
    from discreet.audit.findings import Cost as Cost
    from discreet.audit.findings import Divergence as Divergence
    from discreet.audit.findings import Finding as Finding
    from discreet.audit.findings import Misfit as Misfit
    from discreet.audit.sampled import Trial as Trial
    from discreet.audit.sampled import trial as trial
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "audit.exact": "audit",
            "audit.findings": "Audit Cost Divergence Finding Misfit",
            "audit.sampled": "Trial trial",
        },
        inner={
            "audit.exact": "examine",
        },
    )
