"""What notebooks and plots show: HTML of public values, axes that are images, and tables of charges."""

import numpy as np
import pytest
from released import counted, ranked

import discreet as dp
from discreet.errors import ParameterError
from discreet.release.export import shown_call

LOG = {"user": [n for n in range(4000) for _ in range(3)], "page": ["a", "b", "c"] * 4000}
COLUMNS = {"user": "user", "item": "page"}
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def pyplot():
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    pyplot.close("all")
    yield pyplot
    pyplot.close("all")


def is_png(content):
    return content.startswith(b"\x89PNG") and len(content) > 1000


def paid_budget(budget):
    dp.count(LOG, **COLUMNS, rho=0.25, delta=1e-7, budget=budget)
    budget.charge(dp.Guarantee(rho=0.125, delta=0), made_by=EVIL)
    return budget


def test_a_release_draws_into_the_current_axes(pyplot):
    axes = counted().plot(top=5)
    assert axes is pyplot.gca()
    assert len(axes.patches) == 5
    assert is_png(axes._repr_png_())
    assert "counts of users" in axes.get_xlabel()
    assert "two sigma" in axes.get_xlabel()


def test_a_second_release_does_not_draw_over_the_first(pyplot):
    first = counted().plot(top=5)
    second = counted().plot(top=2)
    assert (len(first.patches), len(second.patches)) == (5, 2)
    assert second is pyplot.gca()
    with pytest.raises(ParameterError, match="labels would change"):
        counted().plot(first)
    first.clear()
    assert len(counted().plot(first, top=3).patches) == 3


def test_a_release_draws_into_given_axes(pyplot):
    left, right = pyplot.subplots(1, 2)[1]
    assert counted().plot(left) is left
    assert counted().plot(ax=right, color="red", top=2) is right
    assert (len(left.patches), len(right.patches)) == (8, 2)
    assert right.patches[0].get_facecolor() == (1.0, 0.0, 0.0, 1.0)
    assert pyplot.get_fignums() == [1]


def test_labels_of_a_plot_are_short_text(pyplot):
    axes = counted(items=["$x^2$", "x" * 10_000, "\x1b[31m\u202e"]).plot()
    texts = [label.get_text() for label in axes.get_yticklabels()]
    assert texts[0] == r"\$x^2\$"
    assert len(texts[1]) == 60
    assert texts[2].isprintable()
    assert is_png(axes._repr_png_())


def test_axes_with_an_image_can_be_pickled(pyplot):
    import pickle

    axes = counted().plot()
    assert is_png(pickle.loads(pickle.dumps(axes.figure)).axes[0]._repr_png_())


def test_releases_without_counts_have_no_plot():
    with pytest.raises(dp.errors.ParameterError, match="no counts to plot"):
        ranked().plot()


def test_plans_and_budgets_draw_themselves(pyplot, tmp_path):
    assert is_png(dp.plan("count", rho=1, delta=1e-6, l0=5).plot(color="green")._repr_png_())
    pyplot.close("all")
    for budget in (
        dp.Budget(rho=1, delta=1e-6),
        dp.Budget(epsilon=8, delta=1e-6),
        dp.Ledger.open(tmp_path / "l").dataset("d", rho=1, delta=1e-6),
    ):
        axes = paid_budget(budget).plot()
        assert len(axes.patches) == 3
        assert axes.get_yticklabels()[-1].get_text() == "remaining"
        assert sum(patch.get_width() for patch in axes.patches) == pytest.approx(100)
        assert is_png(axes._repr_png_())
        pyplot.close("all")


def test_a_ledger_draws_what_was_spent_over_time(pyplot, tmp_path):
    ledger = dp.Ledger.open(tmp_path / "l")
    assert is_png(ledger.plot()._repr_png_())
    pyplot.close("all")
    paid_budget(ledger.dataset("views", rho=1, delta=1e-6))
    ledger.dataset("delta ends first", rho=100, delta=1e-6).charge(dp.Guarantee(rho=1, delta=5e-7), made_by="x")
    ledger.dataset("unused", rho=1, delta=0)
    axes = ledger.plot(linewidth=2)
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.lines[:3]}
    expected = {"views": [25, 37.5], "delta ends first": [50], "unused": []}
    assert lines == {name: pytest.approx(values) for name, values in expected.items()}
    assert is_png(axes._repr_png_())


def test_the_legend_of_a_ledger_names_every_dataset(pyplot, tmp_path):
    ledger = dp.Ledger.open(tmp_path / "l")
    for name in ("_hidden", "views", "$x$"):
        paid_budget(ledger.dataset(name, rho=1, delta=1e-6))
    texts = [text.get_text() for text in ledger.plot().get_legend().get_texts()]
    assert texts == ["_hidden", "views", r"\$x\$"]


def test_a_stream_draws_what_it_released(pyplot):
    stream = dp.BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=2000).start()
    assert not stream.plot().lines
    pyplot.close("all")
    for _ in range(3):
        stream.step([["home"]] * 1000 + [["help"]] * 400)
        stream.show()
    axes = stream.plot(linewidth=2)
    assert [line.get_label() for line in axes.lines] == ["home", "help"]
    assert axes.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert axes.lines[0].get_ydata().tolist()[-1] == stream.show()["home"]
    assert is_png(axes._repr_png_())
    assert [line.get_label() for line in stream.plot(pyplot.figure().add_subplot(), top=1).lines] == ["home"]


def test_the_legend_of_a_stream_names_every_item(pyplot):
    stream = dp.BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=1, horizon=2000).start()
    stream.step([["_home"]] * 1000)
    stream.show()
    assert [text.get_text() for text in stream.plot().get_legend().get_texts()] == ["_home"]


def test_a_stream_remembers_a_limited_part_of_its_releases():
    stream = dp.BinaryMechanism.from_rho(rho=50, delta=1e-6, l0=1, horizon=2000).start()
    events = [[f"item-{number}"] for number in range(100) for _ in range(30)]
    stream.step(events)
    assert len(stream.show()) > 50
    assert [len(release) for release in stream._shown] == [30]
    for _ in range(1100):
        stream.step([])
    assert len(stream._shown) == 1000


@pytest.mark.parametrize(
    "kind", ["release", "plan", "budget", "dataset", "ledger", "guarantee", "history", "comparison"]
)
def test_notebooks_show_tables_with_escaped_text(kind, tmp_path):
    ledger = dp.Ledger.open(tmp_path / f"ledger{EVIL.replace('/', '')}")
    dataset = paid_budget(ledger.dataset(EVIL, rho=1, delta=1e-6))
    release = counted(items=[EVIL, "b"], made_by=EVIL, notes=(EVIL,))
    value = {
        "release": release,
        "plan": dp.plan("count", rho=1, delta=1e-6, l0=5),
        "budget": paid_budget(dp.Budget(rho=1, delta=1e-6)),
        "dataset": dataset,
        "ledger": ledger,
        "guarantee": release.guarantee,
        "history": dataset.history,
        "comparison": release.compare(release),
    }[kind]
    page = value._repr_html_()
    assert "<script" not in page
    assert "<table>" in page or kind == "plan"
    assert ("&lt;script&gt;" in page) == (kind not in ("plan", "guarantee"))


def test_a_history_is_a_table(tmp_path):
    budget = paid_budget(dp.Budget(rho=1, delta=1e-6))
    history = budget.history
    assert isinstance(history, list)
    assert [row.status for row in history] == ["released", "charged"]
    lines = repr(history).splitlines()
    assert lines[0].split() == ["number", "time", "dataset", "mechanism", "verb", "columns", "rho", "delta", "status"]
    assert len(lines) == 3
    assert repr(dp.Budget(rho=1, delta=1e-6).history).splitlines()[1:] == []
    for _ in range(60):
        budget.charge(dp.Guarantee(rho=0.001, delta=0))
    assert repr(budget.history).startswith("the last 50 of 62 charges\n")
    pandas = pytest.importorskip("pandas")
    frame = budget.history.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert {"number", "mechanism", "parameters", "rho", "digest", "version"} <= {*frame.columns}
    assert np.isclose(frame["rho"].sum(), budget.spent.rho)
    assert "number" in dp.Budget(rho=1, delta=1e-6).history.to_pandas().columns


@pytest.mark.parametrize("kind", ["plan", "answers", "verified", "audit"])
def test_a_prompt_shows_the_lines_that_print_shows(kind, tmp_path):
    mechanism = dp.GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=2)
    dp.count(LOG, **COLUMNS, rho=1, delta=1e-6).write(tmp_path / "rows.csv", certificate=True)
    value = {
        "plan": lambda: dp.plan(mechanism),
        "answers": lambda: dp.plan("answer_queries", k=3, rho=1, delta=1e-6),
        "verified": lambda: dp.verify(tmp_path / "rows.csv"),
        "audit": lambda: dp.audit.audit(mechanism, pairs=2, runs=100),
    }[kind]()
    assert repr(value) == str(value)
    assert len(repr(value).splitlines()) > 2


PUBLIC = [f"shop {number:04}" for number in range(2000)]
BOUGHT = {"user": [*range(3000)], "shop": PUBLIC[:2] * 1500, "price": [1.5] * 3000}
OF_PUBLIC = {
    "count": (dp.count, {"l0": 2}),
    "count of all items of a user": (dp.count, {}),
    "count with others": (dp.count, {"l0": 2, "others": True, "delta": 1e-6}),
    "top_k": (dp.top_k, {"k": 2}),
    "sum": (dp.sum, {"l0": 2, "value": "price", "bounds": (0, 9)}),
    "aggregate": (dp.aggregate, {"l0": 2, "rows": 2, "means": {"price": (0, 9)}}),
}


@pytest.mark.parametrize("verb", OF_PUBLIC)
def test_many_public_items_are_shown_by_their_number(verb, tmp_path):
    call, more = OF_PUBLIC[verb]
    data = dp.Ledger.open(tmp_path / "ledger").dataset("shops", rho=9, delta=1e-5)
    release = call(BOUGHT, user="user", item="shop", items=PUBLIC, rho=1, budget=data, **more)
    release.write(tmp_path / "out.csv", certificate=True)
    release.write(tmp_path / "out.html")
    parameters = (tmp_path / "out.html").read_text("utf-8").partition("made by</dt>")[2].partition("</dd>")[0]
    shown = [repr(release), repr(dp.Release.read(tmp_path / "out.csv")), str(dp.verify(tmp_path / "out.csv"))]
    shown += [repr(data), *map(repr, data.history), parameters]
    for text in shown:
        assert "'shop 0042', 'shop 0043'" not in text  # one of both can be a row
        assert len(text) < 2000
    for text in (shown[0], shown[2], shown[4], parameters):
        assert "2,000 items" in text
    assert dp.verify(tmp_path / "out.csv").made_by == release.made_by
    assert "shop 0042" in release.made_by
    few = call(BOUGHT, user="user", item="shop", items=PUBLIC[:2], rho=1, **more)
    assert "'shop 0001'" in repr(few).splitlines()[0]


def test_the_shown_text_of_a_mechanism_is_short_for_any_text():
    for odd in ("f(" + "(" * 5000, "f(items=" + "x" * 5000, f"f(items={['a' * 900] * 9})", "\x1b" * 5000, "f(1)" * 900):
        assert len(shown_call(odd)) <= 600
    assert shown_call(f"GaussianCounts(items={(*range(1000),)}, l0=1)") == "GaussianCounts(items=1,000 items, l0=1)"
    assert shown_call("GaussianCounts(items=('a', 'b'), l0=1)") == "GaussianCounts(items=('a', 'b'), l0=1)"
