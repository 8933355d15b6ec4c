"""The commands of `discreet`, each imported when it is called: `discreet --help` needs only their summaries."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.cli.budget import budget as budget
    from discreet.cli.budget import verify as verify
    from discreet.cli.check import check as check
    from discreet.cli.demo import demo as demo
    from discreet.cli.doctor import doctor as doctor
    from discreet.cli.releases import aggregate as aggregate
    from discreet.cli.releases import count as count
    from discreet.cli.releases import select as select
    from discreet.cli.releases import sum as sum  # noqa: A004 - the name of a command
    from discreet.cli.releases import top_k as top_k
    from discreet.cli.stream import stream as stream
    from discreet.cli.without_data import audit as audit
    from discreet.cli.without_data import plan as plan
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "cli.budget": "budget verify",
            "cli.check": "check",
            "cli.demo": "demo",
            "cli.doctor": "doctor",
            "cli.releases": "aggregate count select sum top_k",
            "cli.stream": "stream",
            "cli.without_data": "audit plan",
        },
    )

SUMMARIES = {
    "aggregate": "Count users and rows, add up and average columns.",
    "audit": "Verify a guarantee by computing exact distributions.",
    "budget": "Create and inspect privacy-budget ledgers.",
    "check": "Show the data's owner what a count reads; not private.",
    "count": "Count the users of each item in FILE.",
    "demo": "Count a synthetic log; no data needed.",
    "doctor": "Check that this installation works.",
    "plan": "Predict the result of a command without data.",
    "select": "List the items that are safe to publish.",
    "stream": "Release running counts after every round.",
    "sum": "Sum a column for each item in FILE.",
    "top-k": "Rank the K items that most users have.",
    "verify": "Check released rows against their certificate, and a policy.",
}
"""The short help of each command."""
