"""Items of a release: labels of the engine until somebody reads them, and a list as in any other release."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from discreet import GaussianThreshold, Histogram, Release, _core
from discreet.formats import RELEASED
from discreet.mechanisms.published import uncounted
from discreet.release.release import changed, later

LABELS = {
    "string": ["b", "a", "é", "", "=1"],
    "binary": [b"b", b"\xff", b""],
    "int64": [3, -1, 2**63 - 1],
    "uint64": [2**64 - 1, 0, 5],
}
KINDS = pytest.mark.parametrize("kind", LABELS)


def made(kind, items):
    mechanism = GaussianThreshold(sigma=5.0, delta=1e-6, l0=1)
    return Release(
        items=items,
        counts=np.arange(len(LABELS[kind]), 0, -1),
        sigmas=np.full(len(LABELS[kind]), 5.0),
        guarantee=mechanism.guarantee,
        spent=mechanism.guarantee,
        made_by=repr(mechanism),
        item_type=kind,
    )


def lazy(kind):
    return made(kind, later(_core.Labels.from_sequence(LABELS[kind])))


def listed(kind):
    return made(kind, list(LABELS[kind]))


@KINDS
def test_items_are_one_list(kind):
    release = lazy(kind)
    assert len(release) == len(LABELS[kind])
    assert type(release.items) is list
    assert release.items == LABELS[kind]
    assert release.items is release.items
    assert release.columns[0][1] is release.items
    assert list(lazy(kind)) == list(listed(kind))


@KINDS
def test_what_is_shown_does_not_depend_on_the_list(kind):
    for show in (repr, Release._repr_html_, len, lambda release: release.digest):
        assert show(lazy(kind)) == show(listed(kind))


@KINDS
def test_copies_and_pickles_have_the_items(kind):
    for copied in (copy.copy, copy.deepcopy, lambda release: pickle.loads(pickle.dumps(release)), changed):
        twin = copied(lazy(kind))
        assert twin.items == LABELS[kind]
        assert twin.digest == listed(kind).digest
        assert copied(twin).items == LABELS[kind]
    assert dataclasses.replace(lazy(kind), notes=("n",)).items == LABELS[kind]
    assert dataclasses.astuple(lazy(kind))[0] == LABELS[kind]
    assert changed(lazy(kind), items=["z"], counts=None).items == ["z"]
    assert (uncounted(lazy(kind)).items, uncounted(lazy(kind)).counts) == (LABELS[kind], None)


def test_a_changed_list_is_what_is_written(tmp_path):
    release = lazy("string")
    release.items[0] = "changed"
    release.write(tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text("utf-8").splitlines()[1] == "changed,5,5.0"


def test_other_attributes_are_errors():
    with pytest.raises(AttributeError, match="'Release' object has no attribute 'item'"):
        _ = lazy("string").item
    with pytest.raises(dataclasses.FrozenInstanceError):
        lazy("string").items = []
    assert not hasattr(lazy("string"), "__dict__")


@KINDS
@pytest.mark.parametrize("suffix", RELEASED)
def test_files_are_the_same(tmp_path, kind, suffix):
    for name, release in (("lazy", lazy(kind)), ("listed", listed(kind))):
        release.write(tmp_path / f"{name}.{suffix}", certificate=True)
    one, other = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("lazy", "listed"))
    assert one == other
    one, other = ((tmp_path / f"{name}.{suffix}.certificate.json").read_bytes() for name in ("lazy", "listed"))
    assert one == other


@KINDS
@pytest.mark.parametrize("empty", [True, False])
def test_frames_are_the_same(kind, empty):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    for release in (lazy(kind), listed(kind)):
        if empty:
            none = later(_core.Labels.from_sequence([]))
            release = changed(release, items=none, counts=release.counts[:0], sigmas=release.sigmas[:0])
        items = [] if empty else LABELS[kind]
        frame = release.to_pandas()
        if not empty:
            pandas.testing.assert_frame_equal(pandas.DataFrame(release), frame)
        dtype = {"string": "str", "binary": "object"}.get(kind, kind)
        pandas.testing.assert_series_equal(frame["item"], pandas.Series(items, dtype=dtype, name="item"))
        assert frame["item"].tolist() == items
        assert frame.dtypes.astype(str).tolist()[1:] == ["int64", "float64"]
        assert release.to_polars()["item"].to_list() == items
        assert release.to_arrow()["item"].to_pylist() == items
        assert str(release.to_arrow().schema.field("item").type) == kind


@pytest.mark.parametrize("kind", ["int64", "string"])
def test_released_rows_are_ordered_by_count_and_label(kind):
    items = [5, 3, 9, 1] if kind == "int64" else ["e", "c", "i", "a"]
    labels = _core.Labels.from_sequence(items)
    named, order = labels.ordered(np.array([3, 0, 2]), np.array([7, 7, 8]))
    assert named.to_list() == [items[2], items[3], items[0]]
    assert order.tolist() == [2, 0, 1]
    with pytest.raises(ValueError, match="one count for each row"):
        labels.ordered(np.array([3]), np.array([7, 7]))


def test_a_release_holds_no_labels_of_other_rows():
    histogram = Histogram.from_counts(["kept", "hidden"], [9000, 1], l0=1, linf=1, complete=True)
    release = GaussianThreshold(sigma=5.0, delta=1e-12, l0=1).release(histogram)
    assert release._labels.to_list() == ["kept"] == release.items
    assert release._labels is None
