"""Queries of the curator, which must only read."""

import gzip

import duckdb
import pytest
from counting import WHOLE, counted

import discreet as dp
from discreet.engines.checking import check
from discreet.engines.sql import query
from discreet.errors import InputError, SchemaError

ROWS = "FROM (VALUES (1, 'a'), (1, 'a'), (2, 'a'), (2, 'b')) t(\"user\", item)"
LOG = f"read_csv('rows.csv', {WHOLE})"
COUNTS = {"a": 2, "b": 1}

WRITES = [
    "COPY (SELECT 1 AS a) TO 'x'",
    "COPY log FROM 'rows.csv'",
    "INSERT INTO log VALUES (1) RETURNING *",
    "UPDATE log SET a = 2 RETURNING *",
    "DELETE FROM log RETURNING *",
    "MERGE INTO log USING (SELECT 1 AS a) s ON log.a = s.a WHEN MATCHED THEN DELETE",
]
SELECTS = [
    "WITH x AS (WRITE) SELECT * FROM x",
    "WITH x AS MATERIALIZED (WRITE) SELECT 1 AS a",
    "WITH y AS (WITH x AS (WRITE) FROM x) FROM y",
    "SELECT * FROM (WITH x AS (WRITE) FROM x) s",
    "SELECT (WITH x AS (WRITE) SELECT a FROM x) AS a",
    "SELECT a FROM range(3) t(a), LATERAL (WITH x AS (WRITE) SELECT * FROM x)",
    "SELECT 1 AS a WHERE EXISTS (WITH x AS (WRITE) FROM x)",
    "SELECT 1 AS a ORDER BY (WITH x AS (WRITE) SELECT a FROM x)",
    "SELECT 1 AS a LIMIT (WITH x AS (WRITE) SELECT a FROM x)",
    "SELECT 1 AS a UNION ALL (WITH x AS (WRITE) FROM x)",
    "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL (WITH x AS (WRITE) SELECT a FROM r, x)) FROM r",
    "VALUES ((WITH x AS (WRITE) SELECT a FROM x))",
    "FROM (WITH x AS (WRITE) FROM x) PIVOT (count(*) FOR a IN (1, 2))",
    "PIVOT (WITH x AS (WRITE) FROM x) ON a USING count(*)",
    "DESCRIBE (WITH x AS (WRITE) FROM x)",
    "SUMMARIZE (WITH x AS (WRITE) FROM x)",
    "SELECT [a + (WITH x AS (WRITE) SELECT a FROM x) FOR a IN [1]] AS a",
    "SELECT count(*) FILTER (WHERE EXISTS (WITH x AS (WRITE) FROM x)) OVER () AS a",
    "FROM read_csv((WITH x AS (WRITE) SELECT 'rows.csv' FROM x))",
    "SELECT 1 AS a; WITH x AS (WRITE) FROM x",
    "EXPLAIN ANALYZE WITH x AS (WRITE) FROM x",
]
OTHERS = ["ATTACH 'x.duckdb'", "SET memory_limit = '1GB'", "INSTALL httpfs", "LOAD json", "CALL checkpoint()"]
OTHERS += ["PRAGMA version", "CREATE TABLE t AS SELECT 1", "EXPORT DATABASE 'x'", "IMPORT DATABASE 'x'"]
OTHERS += ["CREATE MACRO m() AS TABLE SELECT 1", "PREPARE p AS SELECT 1"]
OTHERS += ["SELEC 1", "SELECT nothing FROM nowhere", "SELECT x", ""]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """The bytes of a DuckDB database of one table."""
    path = tmp_path_factory.mktemp("database") / "log.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE log AS SELECT 1 AS a")
    return path.read_bytes()


@pytest.fixture
def folder(tmp_path, monkeypatch, database):
    """A working directory with one CSV file and one database of one table."""
    (tmp_path / "rows.csv").write_text("user,item\n1,a\n1,a\n2,a\n2,b\n")
    for name in ("rows.CSV", "rows.tsv", "a.b.rows.csv"):
        (tmp_path / name).write_text("user,item\n1,a\n")
    for name in ("rows.CSV.gz", "rows.tsv.gz", "a.b.rows.csv.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b"user,item\n1,a\n"))
    (tmp_path / "log.duckdb").write_bytes(database)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def state(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


NESTED = [select.replace("WRITE", WRITES[n % len(WRITES)]) for n, select in enumerate(SELECTS)]
NESTED += [SELECTS[0].replace("WRITE", write) for write in WRITES[1:]]


@pytest.mark.parametrize("sql", [*NESTED, *OTHERS])
def test_a_query_that_may_write_is_refused(folder, sql):
    before = state(folder)
    with pytest.raises(SchemaError, match="the query"):
        query(sql).fetchall()
    assert state(folder) == before


def test_python_variables_are_not_tables():
    rows = {"user": [1], "item": ["a"]}
    assert rows
    with pytest.raises(SchemaError):
        query("FROM rows")


@pytest.mark.parametrize(
    "sql",
    [
        ROWS,
        f"SELECT * {ROWS}",
        "SELECT * FROM LOG",
        "FROM read_csv('rows.csv', all_varchar = true, parallel = false, quote = '')",
        "FROM read_csv($$rows.csv$$, columns = {'user': 'INT', 'item': 'VARCHAR'}, delim = ',', parallel := false, "
        "auto_detect = false, header = true)",
        "FROM read_csv(['rows.csv', 'rows.csv'], Parallel = false, QUOTE := chr(34), escape = '\"')",
        "WITH x AS NOT MATERIALIZED (FROM LOG) FROM x UNION FROM x",
        "WITH x AS MATERIALIZED (FROM LOG) FROM x WHERE item = 'a' UNION FROM x WHERE item = 'b'",
        "WITH x AS NOT MATERIALIZED (FROM LOG) FROM x WHERE item = 'a' UNION FROM x WHERE item = 'b'",
        "WITH rows AS (FROM LOG) FROM rows",
        "WITH a AS (FROM LOG), b AS MATERIALIZED (FROM a WHERE item IN ('a', 'b')) SELECT \"user\", item FROM b",
        'SELECT DISTINCT a."user", b.item FROM LOG a JOIN LOG b USING ("user", item)',
        "SELECT \"user\", item FROM LOG WHERE item LIKE 'a%' UNION ALL SELECT 2, lower(trim(' B '))",
        'SELECT "user", item FROM (SELECT *, row_number() OVER (PARTITION BY item ORDER BY "user") AS n '
        "FROM LOG) QUALIFY rank() OVER (ORDER BY n) > 0",
        "SELECT u::BIGINT AS \"user\", CASE i WHEN 0 THEN 'a' ELSE 'b' END AS item "
        "FROM (VALUES (1, 0), (2, 0), (2, 1)) t(u, i) ORDER BY random() LIMIT 100 OFFSET 0",
        "SELECT unnest([1, 2, 2]) AS \"user\", unnest(list_transform(['A', 'A', 'B'], lambda x: lower(x))) AS item",
        'SELECT "user", item FROM LOG, LATERAL (SELECT max("user") AS top FROM LOG) WHERE top > 0',
        "SELECT \"user\", max(item) AS item FROM LOG GROUP BY ALL HAVING count(*) > 0 UNION SELECT 2, 'a'",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 2) SELECT n AS \"user\", 'a' AS item "
        "FROM r UNION ALL SELECT TRY_CAST('2' AS INT), regexp_extract('xb', 'x(.)', 1)",
        'SELECT "user", item FROM (SELECT 1 AS a, 2 AS b) UNPIVOT ("user" FOR item IN (a, b)) '
        "UNION ALL SELECT 2, 'a'",
    ],
)
def test_a_query_that_only_reads_is_counted(folder, sql):
    assert counted(query(sql.replace("LOG", LOG))) == COUNTS


@pytest.mark.parametrize(
    "read",
    [
        "'rows.csv'",
        '"rows.CSV"',
        "'*.csv' t",
        "'rows.tsv.gz'",
        "rows.csv",
        "rows.CSV.gz",
        "a.b.rows.csv.gz",
        'rows."tsv"',
        "read_csv('rows.csv')",
        "read_csv_auto('rows.csv', parallel = true)",
        "read_csv('rows.csv', parallel = (1 = 0))",
        "read_csv('rows.csv', parallel = false)",
        "read_csv('rows.csv', parallel = false, quote = '\"')",
        "read_csv('rows.csv', parallel = false, escape = '\"')",
        "read_csv('rows.csv', quote = '\"', escape = '\"')",
        "read_csv('rows.csv', auto_detect = false, columns = {'user': 'INT', 'item': 'VARCHAR'})",
        "(FROM LOG) a, 'rows.csv' b",
        "(FROM LOG UNION ALL FROM rows.csv)",
        "(FROM LOG UNION ALL FROM read_csv('rows.csv'))",
        "(SELECT * FROM (VALUES (1)) v, read_CSV(['rows.csv']))",
        "query('FROM rows.csv')",
        "json_execute_serialized_sql(json_serialize_sql('FROM rows.csv'))",
    ],
)
def test_a_query_with_a_parallel_csv_scan_is_refused(folder, read):
    with pytest.raises(SchemaError, match="parallel = false"):
        query(f"WITH x AS (FROM {read.replace('LOG', LOG)}) FROM x")


@pytest.mark.parametrize(
    "read", ["rows.csv", "'rows.csv'", "v", "w", "m('rows.csv')", 'LOG JOIN v USING ("user", item)', "query('FROM v')"]
)
def test_a_relation_is_judged_by_its_plan(folder, read):
    connection = duckdb.connect()
    connection.execute("CREATE MACRO m(p) AS TABLE SELECT * FROM read_csv(p)")
    connection.execute("CREATE VIEW v AS FROM m('rows.csv'); CREATE VIEW w AS FROM v ORDER BY item")
    connection.execute("CREATE VIEW csv AS SELECT 1 AS \"user\", 'read_csv' AS item; CREATE TABLE t AS FROM csv")
    budget = dp.Budget(rho=1, delta=1e-5)
    made = connection.sql(f"SELECT *, 1 AS n FROM {read}".replace("LOG", LOG))
    for relation in (made, made.filter("true")):
        with pytest.raises(SchemaError, match="parallel = false"):
            dp.count(relation, user="user", item="item", rho=1, delta=1e-6, budget=budget)
        with pytest.raises(SchemaError, match="parallel = false"):
            dp.sum(relation, user="user", item="item", value="n", bounds=(0, 1), l0=1, rho=1, delta=1e-6, budget=budget)
        with pytest.raises(SchemaError, match="parallel = false"):
            check(relation)
    assert budget.spent.rho == 0
    assert counted(connection.sql(f"FROM {LOG}").filter("true")) == COUNTS
    assert counted(connection.sql(f"SELECT a.* FROM {LOG} a JOIN t ON true JOIN csv ON true")) == COUNTS
    assert counted(connection.table("csv")) == {"read_csv": 1}


def test_a_long_query_is_not_refused_for_its_depth():
    rows = " UNION ALL ".join(f'SELECT {n} AS "user", {" || ".join([repr("a")] * 300)} AS item' for n in range(3))
    assert counted(query(rows)) == {"a" * 300: 3}


def test_a_query_does_not_change_a_database(folder):
    before = state(folder)
    assert counted(query("SELECT a AS \"user\", 'x' AS item FROM read_duckdb('log.duckdb', table_name = 'log')")) == {
        "x": 1
    }
    assert state(folder) == before


@pytest.mark.parametrize("verb", ["count", "sum"])
def test_a_relation_beside_an_open_result_names_the_remedy(verb):
    connection = duckdb.connect()
    rows = connection.sql("SELECT i::VARCHAR AS u, 'a' AS i, 1 AS v FROM range(3000) t(i)")
    more = {"delta": 1e-6} if verb == "count" else {"value": "v", "items": ["a"], "bounds": (0, 1)}
    connection.execute("SELECT 1")
    with pytest.raises(InputError, match="fetch the result of the connection's last query first"):
        getattr(dp, verb)(rows, user="u", item="i", rho=1, **more)
    connection.fetchall()
    assert len(getattr(dp, verb)(rows, user="u", item="i", rho=1, **more)) == 1
