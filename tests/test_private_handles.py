"""Private handles: Python objects that hold data of users. Introspection must return none of the data.

Introspection means Python's own functions and methods for all objects, such as `repr`, `vars` and `pickle.dumps`.
"""

import copy
import inspect
import pickle
import re
import reprlib
import sys
import warnings
import weakref

import numpy as np
import pytest
from user_lists import lists_of

from discreet import BinaryMechanism, Histogram, _core
from discreet.mechanisms import CountsWithFoundBound
from discreet.mechanisms.steps.base import Rows, SoFar
from discreet.tables import Table, UserItems

COUNT = 31337
SECRETS = ("secret-label", str(COUNT), f"{COUNT:,}", hex(COUNT))


def streamed():
    stream = BinaryMechanism.from_rho(rho=1.0, delta=1e-6, horizon=4, l0=1).start(items="text")
    stream.step([["secret-label"]] * COUNT)
    return stream


def handles():
    """Yield a private handle of each type."""
    pairs = [*range(COUNT), 1], ["secret-label"] * COUNT + ["other"]
    labels, lists = lists_of(*pairs)
    table, noise = _core.ItemTable(), _core.NodeNoise()
    table.extend(["secret-label"] * 1)
    noise.extend(bytes(32 * COUNT))
    histogram, items = Histogram.from_pairs(*pairs), UserItems.from_pairs(*pairs)
    yield from (histogram, items, labels, lists, table, noise, _core.Counts(np.array([COUNT])))
    yield from (*histogram._rows, histogram._labels, items._lists, items._lists._lists, items._lists._labels)
    yield _core.KnownLabels.from_sequence(["secret-label"])
    table = Table({"user": pairs[0], "item": pairs[1]}, user="user", item="item")
    rows = Rows(table)
    assert rows.numbers().sum() == COUNT + 1
    yield from (table, rows, SoFar(mechanism=CountsWithFoundBound(rho=1, delta=1e-6), table=table, rows=rows))
    yield _core.Rng()
    stream = streamed()
    yield from (stream, stream._running, _core.NodeSums())


HANDLES = [pytest.param(handle, id=f"{n}-{type(handle).__name__}") for n, handle in enumerate(handles())]


def is_data(found):
    """Return whether a text contains a secret, or an array is not of objects.

    `np.asarray` wraps a handle in an array of objects, which holds the handle itself and is no data. Nor are addresses
    and hashes, whose many digits may hold those of a secret by chance.
    """
    if isinstance(found, np.ndarray):
        return found.dtype != object
    text = re.sub(r"0x[0-9a-f]{9,}|[0-9]{9,}", "", found)
    return any(secret in text for secret in SECRETS)


def shown(value, depth=3):
    """Yield the texts and arrays that introspection of a value returns.

    Results that are containers or objects of discreet are examined in turn, objects to a depth of three.
    """
    if isinstance(value, type) or inspect.ismodule(value) or inspect.isroutine(value):
        return
    yield value if isinstance(value, np.ndarray) else repr(value)
    if isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inner = list(value)
    elif depth and type(value).__module__.startswith(("discreet", "test")):
        inner, depth = results(value), depth - 1
    else:
        return
    for part in inner:
        yield from shown(part, depth)


INTROSPECTION = [
    dir,
    vars,
    repr,
    str,
    format,
    ascii,
    reprlib.repr,
    sys.getsizeof,
    bool,
    len,
    iter,
    list,
    int,
    float,
    bytes,
    memoryview,
    hash,
    copy.copy,
    copy.deepcopy,
    pickle.dumps,
    inspect.getmembers,
    inspect.getmembers_static,
    lambda value: object.__reduce_ex__(value, 2),
    lambda value: object.__reduce_ex__(value, 0),
    lambda value: object.__dir__(value),
    lambda value: object.__repr__(value),
    lambda value: object.__getattribute__(value, "__dict__"),
    lambda value: value.__getstate__(),
    lambda value: value.__reduce__(),
    lambda value: value.__reduce_ex__(4),
    lambda value: repr(value == value.__class__),
    lambda value: value < value,
    lambda value: value + value,
    lambda value: "secret-label" in value,
    lambda value: value[0],
    lambda value: value["secret-label"],
    lambda value: np.asarray(value),
    lambda value: weakref.ref(value)(),
    lambda value: [getattr(value, name) for name in type(value).__slots__],
]


def results(value):
    """Yield the results of introspection and of special methods without arguments; for an error, yield its text."""
    acting = {"__init__", "__enter__", "__exit__", "__del__"}
    methods = [getattr(type(value), name) for name in {*dir(type(value))} - acting if name.startswith("__")]
    calls = [method for method in methods if callable(method) and not isinstance(method, type)]
    for call in [*INTROSPECTION, *calls]:
        try:
            with warnings.catch_warnings(action="ignore"):
                yield call(value)
        except Exception as error:
            yield str(error)


@pytest.mark.parametrize("handle", HANDLES)
def test_introspection_of_a_private_handle_returns_no_data(handle):
    found = [part for part in shown(handle) if is_data(part)]
    assert found == []


@pytest.mark.parametrize("handle", HANDLES)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps, len, iter, list, vars, int])
def test_no_private_handle_can_be_copied_or_iterated(handle, copied):
    with pytest.raises(TypeError):
        copied(handle)


@pytest.mark.parametrize("kind", [Histogram, UserItems])
def test_few_and_many_data_look_the_same_from_outside(kind):
    one, many = kind.from_pairs([1], ["a"]), kind.from_pairs([*range(9999)], [*range(9999)])
    for call in (repr, str, sys.getsizeof, dir, bool):
        assert call(one) == call(many)
    assert one != many
    assert [name for name in dir(one) if not hasattr(type(one), name)] == []
    assert "SENSITIVE" in repr(one)
    with pytest.raises(AttributeError):
        one.note = 1
    with pytest.raises(TypeError, match="from_table"):
        kind()


@pytest.mark.parametrize("kind", [Histogram, UserItems])
def test_private_attributes_of_a_handle_reveal_no_data(kind):
    """Streams are exempt: their private attributes hold arrays, which only code that names the attributes can read."""
    handle = kind.from_pairs([*range(COUNT)], ["secret-label"] * COUNT)
    attributes = object.__getstate__(handle)
    public = {"_limit", "_cap", "_below", "_sensitivity", "_clipped_to", "_every", "_unit"}
    assert set(attributes) <= {"_rows", "_sorted", "_users", "_labels", "_lists", *public}
    assert not any(map(is_data, shown(attributes)))


def test_introspection_of_an_ordinary_object_finds_its_data():
    """If `shown` found no data in any object, the tests above would pass for every handle."""
    histogram = Histogram.from_pairs([1], ["secret-label"])
    assert any(map(is_data, shown({"labels": histogram._labels.take(np.arange(1))})))

    class Open:
        def __init__(self):
            self.counts = np.array([COUNT])

    assert any(map(is_data, shown(Open())))
