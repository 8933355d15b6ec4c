"""What the caller's `progress` raises ends a count as it is."""

import time

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InputError


class MineError(RuntimeError):
    """An error of the caller."""


def raises():
    raise MineError("stop")


class Slow:
    """A table whose stream takes half a second, so that `progress` is called, which happens every 100 ms."""

    def __arrow_c_stream__(self, requested_schema=None):
        pyarrow = pytest.importorskip("pyarrow")
        batch = pyarrow.record_batch({"user": np.arange(20_000), "item": np.arange(20_000) % 7})

        def batches():
            for _ in range(25):
                time.sleep(0.02)
                yield batch

        return pyarrow.RecordBatchReader.from_batches(batch.schema, batches()).__arrow_c_stream__()


@pytest.mark.parametrize(
    "given",
    [{}, {"l0": "auto"}, {"l0": 2, "kept_share": True}],
    ids=["count", "auto", "share"],
)
def test_an_error_of_progress_is_the_error_of_a_count(given):
    budget = dp.Budget(rho=1, delta=1e-6)
    with pytest.raises(MineError, match="stop") as raised:
        dp.count(Slow(), user="user", item="item", rho=1, delta=1e-6, progress=raises, budget=budget, **given)
    assert raised.value.__context__ is None
    assert budget.remaining.rho == 1


def test_an_error_of_progress_is_the_error_of_a_set_union():
    with pytest.raises(MineError):
        dp.select(Slow(), user="user", item="item", l0=2, rho=1, delta=1e-6, method="greedy", progress=raises)


def test_an_interrupt_in_progress_is_an_interrupt():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dp.count(Slow(), user="user", item="item", rho=1, delta=1e-6, progress=interrupted)


@pytest.mark.parametrize("kind", [StopIteration, GeneratorExit, MemoryError])
def test_an_error_that_ends_generators_is_passed_on_too(kind):
    def stops():
        raise kind("stop")

    with pytest.raises(kind, match="stop"):
        dp.count(Slow(), user="user", item="item", rho=1, delta=1e-6, progress=stops)


def test_other_errors_stay_errors_of_the_input(tmp_path):
    (tmp_path / "log.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError):
        dp.count(tmp_path / "log.parquet", user="user", item="item", rho=1, delta=1e-6, progress=lambda: None)
