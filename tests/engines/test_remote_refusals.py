"""Tables of a cluster or warehouse that a mechanism cannot read there: refused before any charge, with a remedy."""

import datetime as dt
import logging
from functools import partial

import pytest
from counting import counted

import discreet as dp
from discreet.engines import spark_session
from discreet.errors import ParameterError, ResourceError, SchemaError


class DataFrame:
    """A frame of PySpark, by its class alone: neither Java nor a session is needed to refuse it."""


DataFrame.__module__ = "pyspark.sql.dataframe"


@pytest.mark.parametrize("library", ["pyspark", "ibis"])
def test_a_bound_of_listed_items_needs_the_rows_here(library):
    if library == "ibis":
        ibis = pytest.importorskip("ibis")
        table = ibis.memtable({"user": [1, 2], "page": ["home", "help"]})
    else:
        table = DataFrame()
    bound = dp.mechanisms.ContributionBound(epsilon=1, only=("home",))
    budget = dp.Budget(rho=9, delta=1e-5)
    rows = dp.tables.Table(table, user="user", item="page")
    with pytest.raises(ParameterError, match=r"toArrow\(\) of Spark or to_pyarrow\(\) of Ibis"):
        budget.release(bound, rows)
    assert budget.spent.rho == 0


def test_the_remedy_for_a_table_of_ibis_works():
    ibis = pytest.importorskip("ibis")
    table = ibis.memtable({"user": [*range(4000)], "page": ["home"] * 4000})
    bound = dp.mechanisms.ContributionBound(epsilon=1, only=("home",))
    assert bound.release(table.to_pyarrow(), user="user", item="page").items == [1]


def test_timestamps_of_spark_are_refused_with_a_remedy():
    types = pytest.importorskip("pyspark.sql.types")
    from discreet.engines.spark import _kind

    for kind in (types.TimestampType(), types.TimestampNTZType()):
        with pytest.raises(SchemaError, match=r"column .ts. has the type timestamp.*; cast it to a date or to text"):
            _kind(kind, "ts")
    assert _kind(types.DateType(), "ts") == "date"


def test_timestamps_of_ibis_are_refused_before_any_charge():
    ibis = pytest.importorskip("ibis")
    table = ibis.memtable({"user": [1], "ts": [dt.datetime(2026, 1, 31)]})
    budget = dp.Budget(rho=1, delta=1e-5)
    with pytest.raises(SchemaError, match="cast it to text"):
        dp.count(table, user="user", item="ts", rho=1, delta=1e-6, budget=budget)
    assert budget.spent.rho == 0
    text = table.mutate(ts=table.ts.cast("string"))
    assert counted(text, item="ts") == {"2026-01-31 00:00:00": 1}


@pytest.fixture
def dead_session(monkeypatch):
    class Session:
        def stop(self):
            raise ConnectionRefusedError("no Java process listens")

    monkeypatch.setattr(spark_session, "_started", lambda master: Session())
    monkeypatch.setattr(spark_session, "_table", lambda *given: None)
    return partial(spark_session.opened, "log.parquet", "local[*]", ["user", "item"])


def test_a_session_whose_java_ended_keeps_its_error(dead_session):
    with pytest.raises(ResourceError, match="has stopped"), dead_session():
        raise ResourceError("the Spark session has stopped")


def test_what_pyspark_logs_at_an_interrupt_is_not_printed(dead_session, monkeypatch, capsys):
    monkeypatch.setattr(logging.root, "handlers", [])
    with dead_session():
        logging.exception("KeyboardInterrupt while sending command.")
    assert capsys.readouterr().err == ""
