"""Parquet files in the local engine: invalid text, different schemas, damage and memory limits."""

import pytest
from counting import counted

import discreet as dp
from discreet.engines import local
from discreet.errors import InputError, SchemaError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def test_a_damaged_parquet_file_is_an_input_error(tmp_path):
    path = tmp_path / "log.parquet"
    query = "SELECT range AS \"user\", 'word-' || range AS item FROM range(50000)"
    local.connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    content = bytearray(path.read_bytes())
    content[2000:90_000] = b"\xaa" * 88_000
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"log\.parquet") as caught:
        counted(path)
    assert "word-" not in str(caught.value)


@pytest.mark.parametrize(
    "kind", ["DOUBLE", "TIME", "INTERVAL", "DECIMAL(9,2)", "DECIMAL(19,0)", "HUGEINT", "INTEGER[]"]
)
def test_other_column_types_are_refused_before_reading(tmp_path, kind):
    path = tmp_path / "typed.parquet"
    local.connect().execute(f"COPY (SELECT 1 AS \"user\", NULL::{kind} AS item) TO '{path}' (FORMAT parquet)")
    with pytest.raises(SchemaError, match="item"):
        counted(path)


def broken(cells):
    """Return Arrow text that need not be UTF-8."""
    plain = pyarrow.array(cells, pyarrow.binary())
    return pyarrow.Array.from_buffers(pyarrow.string(), len(cells), plain.buffers())


def test_parquet_rows_with_invalid_utf8_are_dropped(tmp_path):
    table = {
        "user": [b"u%d" % (n % 5000) for n in range(60_000)],
        "item": [b"item %d?" % (n % 7) for n in range(60_000)],
    }
    for n in range(100, 60_000, 997):
        table["user" if n % 2 else "item"][n] = b"odd\xff\xfe"
    odd = pyarrow.table({name: broken(cells) for name, cells in table.items()})
    for part in range(3):
        rows = odd.slice(part * 20_000, 20_000)
        parquet.write_table(rows, tmp_path / f"{part}.parquet", row_group_size=3000, use_dictionary=part == 1)
    kept = [pair for pair in zip(table["user"], table["item"], strict=True) if not {*pair} & {b"odd\xff\xfe"}]
    expected = {f"item {n}?": len({user for user, item in kept if item == b"item %d?" % n}) for n in range(7)}
    assert counted(str(tmp_path / "*.parquet")) == expected
    named = dp.select(
        str(tmp_path / "*.parquet"), user="user", item="item", l0=7, rho=100, delta=1e-3, method="dp_sips"
    )
    assert set(named.items) == {f"item {n}?" for n in range(7)}
    (tmp_path / "0.parquet").write_bytes((tmp_path / "0.parquet").read_bytes()[:-3000])
    with pytest.raises(InputError, match="cannot read"):
        counted(str(tmp_path / "*.parquet"))


def test_parquet_files_with_different_schemas_are_refused(tmp_path):
    connection = local.connect()
    for number, user, name in (
        (1, "1::BIGINT", "item"),
        (2, "'7'", "item"),
        (3, "1.5::DOUBLE", "item"),
        (4, "1::BIGINT", "itm"),
    ):
        rows = f"SELECT {user} AS \"user\", 'a' AS {name}"
        connection.execute(f"COPY ({rows}) TO '{tmp_path}/{number}.parquet' (FORMAT parquet)")
    for other, what in ((2, "same types"), (3, "same types"), (4, "did you mean 'itm'")):
        with pytest.raises(SchemaError, match=what):
            counted(str(tmp_path / f"[1{other}].parquet"))
    assert counted(str(tmp_path / "1.parquet")) == {"a": 1}


def test_a_schema_gives_near_misses_if_both_names_are_wrong(tmp_path):
    path = tmp_path / "log.parquet"
    local.connect().execute(f"COPY (SELECT 1 AS \"user\", 'a' AS item) TO '{path}' (FORMAT parquet)")
    with pytest.raises(SchemaError, match="no column 'usr'; did you mean 'user'"):
        counted(str(path), "usr", "itm")


def test_parquet_columns_are_chosen_by_their_exact_names(tmp_path):

    nested = pyarrow.array([{"id": 1, "ID": 2}] * 3)
    good = pyarrow.table({"user": [1, 2, 3], "more": nested, "item": ["a", "a", "a"]})
    parquet.write_table(good, tmp_path / "good.parquet")
    assert counted(tmp_path / "good.parquet") == {"a": 3}
    clash = pyarrow.table([[1, 2, 3], [7, 7, 7], ["a"] * 3], names=["ID", "id", "item"])
    parquet.write_table(clash, tmp_path / "clash.parquet")
    for name in ("id", "ID"):
        with pytest.raises(SchemaError, match="case"):
            counted(tmp_path / "clash.parquet", user=name)
