"""Counts over unknown items at a given epsilon and delta: releases by PipelineDP, SmartNoise, Tumult and discreet.

Install each library in an environment of its own, because their versions of pandas, numpy and OpenDP differ:

    pip install discreet pipeline-dp
    pip install discreet smartnoise-sql
    pip install discreet tmlt.analytics      # needs Java 8, 11 or 17 for Spark

Every function prepares a table with the columns user and item, and returns a function of epsilon, delta and l0 that
makes one release as a dictionary. The library itself keeps at most l0 items of each user. Every library gets its most
favourable setting: the whole epsilon and delta go to one mechanism that both selects and counts the items.
"""

from __future__ import annotations

import os
import sys
import tempfile

import discreet as dp

LAPLACE_L0 = 3
"""PipelineDP and discreet use Laplace noise up to this l0, and Gaussian noise above, to have the lower threshold."""


def pipelinedp(data):
    """Release with PipelineDP on its local backend: one noisy count of users decides and is published."""
    import pipeline_dp as pdp

    rows = list(zip(data["user"].tolist(), data["item"].tolist(), strict=True))
    extractors = pdp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=lambda row: 0
    )

    def release(epsilon, delta, l0):
        accountant = pdp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
        parameters = pdp.AggregateParams(
            metrics=[pdp.Metrics.PRIVACY_ID_COUNT],
            noise_kind=pdp.NoiseKind.LAPLACE if l0 <= LAPLACE_L0 else pdp.NoiseKind.GAUSSIAN,
            max_partitions_contributed=l0,
            max_contributions_per_partition=1,
            post_aggregation_thresholding=True,
        )
        result = pdp.DPEngine(accountant, pdp.LocalBackend()).aggregate(rows, parameters, extractors)
        accountant.compute_budgets()
        return {item: metrics.privacy_id_count for item, metrics in result}

    return release


def smartnoise(data):
    """Release with SmartNoise SQL: the noisy number of distinct users of each item, censored below a threshold.

    The noise is Laplace noise, the library's default. Its Gaussian noise grows with l0, not with the root of l0.
    """
    import pandas as pd
    import snsql

    frame = pd.DataFrame({"person": data["user"], "thing": data["item"]})
    columns = {"person": {"type": "int", "private_id": True}, "thing": {"type": "int"}}

    def release(epsilon, delta, l0):
        options = {"max_ids": l0, "rows": len(frame), "censor_dims": True, "clamp_counts": False, "use_dpsu": False}
        reader = snsql.from_df(
            frame,
            privacy=snsql.Privacy(epsilon=epsilon, delta=delta),
            metadata={"": {"main": {"pairs": options | columns}}},
        )
        query = "SELECT thing, COUNT(DISTINCT person) AS n FROM main.pairs GROUP BY thing"
        return dict(reader.execute(query)[1:])

    return release


def tumult(data):
    """Release with Tumult Core: its partition selection on Spark, which publishes the noisy counts too.

    Tumult Analytics would split epsilon between the selection and a second count.
    """
    from tmlt.core.domains.spark_domains import SparkDataFrameDomain, SparkIntegerColumnDescriptor
    from tmlt.core.measurements.aggregations import create_partition_selection_measurement
    from tmlt.core.metrics import SymmetricDifference
    from tmlt.core.transformations.spark_transformations.select import Select
    from tmlt.core.transformations.spark_transformations.truncation import LimitRowsPerGroup
    from tmlt.core.utils.exact_number import ExactNumber

    frame = spark_frame(data)
    whole = SparkIntegerColumnDescriptor(size=64)
    domain = SparkDataFrameDomain({"user": whole, "item": whole})

    def release(epsilon, delta, l0):
        limit = LimitRowsPerGroup(domain, SymmetricDifference(), ["user"], l0)
        items = Select(domain, SymmetricDifference(), ["item"])
        selection = create_partition_selection_measurement(
            items.output_domain,
            epsilon=ExactNumber.from_float(epsilon, round_up=False),
            delta=ExactNumber.from_float(delta, round_up=False),
            d_in=limit.stability_function(1),
        )
        found = (limit | items | selection)(frame).toPandas()
        return dict(zip(found["item"].tolist(), found["count"].tolist(), strict=True))

    return release


def spark_frame(data):
    """Return the table as a Spark DataFrame of a local session whose tables go to a temporary folder."""
    import pandas as pd
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.sql.warehouse.dir": tempfile.mkdtemp(),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.memory": "3g",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session.createDataFrame(pd.DataFrame({"user": data["user"], "item": data["item"]}))


def discreet(data):
    """Release with this library's Laplace or Gaussian threshold, at the same guarantee as the other libraries."""

    def release(epsilon, delta, l0):
        histogram = dp.Histogram.from_table(data, user="user", item="item", l0=l0)
        kind = dp.LaplaceThreshold if l0 <= LAPLACE_L0 else dp.GaussianThreshold
        return dict(kind.from_epsilon(epsilon=epsilon, delta=delta, l0=l0).release(histogram))

    return release


LIBRARIES = {
    "discreet": (discreet, "discreet"),
    "pipelinedp": (pipelinedp, "pipeline-dp"),
    "smartnoise": (smartnoise, "smartnoise-sql"),
    "tumult": (tumult, "tmlt.core"),
}
"""The function and the package of every library."""
