"""What an operator does with SSTables of a running node: import, refresh, upgradesstables, verify, scrub, getsstables. The files are
those that Cassandra wrote (testdata/fixtures). Starts servers of its own, so only for Helenus."""

import gzip
import json
import os
import re
import shutil

import pytest

import server as helenus

if os.environ.get("HELENUS_TEST_PEER", "helenus") != "helenus":
    pytest.skip("these tests start Helenus themselves", allow_module_level=True)

FIXTURES = helenus.ROOT / "testdata" / "fixtures"
# simple rows, three overlapping SSTables; deletions of every kind; statics; many index blocks; compression; leveled; not compressed
TABLES = ["kv_multi", "dels", "st_basic", "wide_ci", "cmp_zstd_16k", "lvl", "kv_nocomp", "cnt"]


def connect(node):
    from conftest import READS_NO_SCHEMA, Contact

    return Contact(node.host, node.port).cluster(**READS_NO_SCHEMA)


def create(node, table, compacts=False):
    """Makes the fixture's table, empty; nothing is compacted by itself."""
    text = (FIXTURES / table / "schema.cql").read_text()
    text = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    with connect(node) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE IF NOT EXISTS fx WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        for statement in filter(str.strip, text.split(";")):
            session.execute(statement)
        if not compacts and table != "lvl":
            session.execute(f"ALTER TABLE fx.{table} WITH compaction = {{'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}}")


def rows(node, table):
    with connect(node) as cluster:
        found = cluster.connect().execute(f"SELECT JSON * FROM fx.{table}", timeout=60)
        return [json.loads(row[0]) for row in found]


def expected(table):
    with gzip.open(FIXTURES / table / "rows.jsonl.gz", "rt") as lines:
        return [json.loads(line)["json"] for line in lines]


def incoming(tmp_path, table, version="da"):
    """A directory with the fixture's SSTables and nothing else."""
    directory = tmp_path / f"incoming-{table}-{version}"
    directory.mkdir()
    for file in (FIXTURES / table / version).iterdir():
        if file.is_file() and re.search(r"\.(db|crc32|txt)$", file.name) and not file.name.endswith("-metadata.txt"):
            shutil.copy(file, directory)
    return directory


def table_directory(node, table):
    return next((node.data_dir / "data" / "fx").glob(f"{table}-*"))


def data_files(directory):
    return sorted(directory.glob("*-Data.db"))


def flip(file, offset):
    with open(file, "r+b") as opened:
        opened.seek(offset)
        byte = opened.read(1)[0]
        opened.seek(offset)
        opened.write(bytes([byte ^ 0x40]))


def done(result, code=0):
    assert result.returncode == code, result.stdout + result.stderr
    return result


@pytest.mark.parametrize("version", ["da", "oa", "nb"])
@pytest.mark.parametrize("table", TABLES)
def test_imported_rows_are_those_of_cassandra(node, tmp_path, table, version):
    create(node, table)
    source = incoming(tmp_path, table, version)
    done(node.nodetool("import", "fx", table, str(source)))
    assert data_files(source) == []
    assert rows(node, table) == expected(table)
    node.kill()
    node.start()
    assert rows(node, table) == expected(table)
    done(node.nodetool("compact", "fx", table))
    assert rows(node, table) == expected(table)
    assert node.stop() == 0, node.log_tail()


def test_a_copy_stays_and_a_second_import_changes_nothing(node, tmp_path):
    create(node, "kv_multi")
    source = incoming(tmp_path, "kv_multi")
    for _ in range(2):
        done(node.nodetool("import", "-p", "-e", "fx", "kv_multi", str(source)))
        assert len(data_files(source)) == 3
        assert rows(node, "kv_multi") == expected("kv_multi")
    assert len(data_files(table_directory(node, "kv_multi"))) == 6


def test_directories_that_cannot_be_imported_are_named(node, tmp_path):
    create(node, "kv_multi")
    good, bad = incoming(tmp_path, "kv_multi"), incoming(tmp_path, "dels")
    corrupt = tmp_path / "corrupt"
    shutil.copytree(good, corrupt)
    flip(data_files(corrupt)[0], 40)
    refused = done(node.nodetool("import", "fx", "kv_multi", str(bad), str(corrupt), str(good)), 1)
    assert refused.stderr == f"Some directories failed to import, check server logs for details:\n{bad}\n{corrupt}\n"
    assert rows(node, "kv_multi") == expected("kv_multi")
    assert len(data_files(bad)) == 2 and len(data_files(corrupt)) == 3
    log = node.log_tail(20000)
    assert "clustering columns" in log and "digest" in log
    nowhere = done(node.nodetool("import", "fx", "kv_multi", "/nowhere"), 2)
    assert nowhere.stderr == "error: Directory /nowhere does not exist\n"
    assert "Unknown keyspace/cf pair" in done(node.nodetool("import", "fx", "nosuch", str(good)), 1).stderr


def test_a_column_that_the_schema_does_not_know_is_named(node, tmp_path):
    with connect(node) as cluster:
        session = cluster.connect()
        session.execute("CREATE KEYSPACE fx WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute("CREATE TABLE fx.kv_multi (k int PRIMARY KEY, a text)")
    source = incoming(tmp_path, "kv_multi")
    done(node.nodetool("import", "fx", "kv_multi", str(source)), 1)
    assert "Unknown column b (org.apache.cassandra.db.marshal.LongType)" in node.log_tail()
    assert len(data_files(source)) == 3


def test_levels_and_repair_state_are_kept_or_not(node, tmp_path):
    create(node, "lvl")
    done(node.nodetool("import", "-p", "-l", "-r", "fx", "lvl", str(incoming(tmp_path, "lvl"))))
    [line] = done(node.nodetool("getsstables", "-l", "fx", "lvl", str(rows(node, "lvl")[0]["k"]))).stdout.splitlines()
    level, path = line.split(": ")
    assert int(level) > 0 and path.endswith("-Data.db")
    done(node.nodetool("upgradesstables", "-a", "fx", "lvl"))
    [again] = done(node.nodetool("getsstables", "-l", "fx", "lvl", str(rows(node, "lvl")[0]["k"]))).stdout.splitlines()
    assert again.split(": ")[0] == level and again != line


def test_refresh_loads_what_was_put_into_the_directory(node, tmp_path):
    create(node, "kv_multi")
    with connect(node) as cluster:
        cluster.connect().execute("INSERT INTO fx.kv_multi (k, a) VALUES (1000, 'mine')")
    done(node.nodetool("flush", "fx", "kv_multi"))
    directory = table_directory(node, "kv_multi")
    mine = data_files(directory)
    for file in incoming(tmp_path, "kv_multi").iterdir():
        # one of them has the name of ours
        name = re.sub(r"^da-(\d+)", lambda found: f"da-{int(found[1]) + 1}", file.name)
        shutil.copy(file, directory / name)
    done(node.nodetool("refresh", "fx", "kv_multi"))
    found = rows(node, "kv_multi")
    assert {"k": 1000, "a": "mine", "b": None} in found
    assert [row for row in found if row["k"] != 1000] == expected("kv_multi")
    assert len(data_files(directory)) == 4 and mine[0] in data_files(directory)
    node.kill()
    node.start()
    assert rows(node, "kv_multi") == found


@pytest.mark.parametrize("version", ["oa", "nb"])
def test_upgradesstables_writes_what_is_of_another_version(node, tmp_path, version):
    create(node, "dels")
    done(node.nodetool("import", "fx", "dels", str(incoming(tmp_path, "dels", version))))
    directory = table_directory(node, "dels")
    assert {file.name[:2] for file in data_files(directory)} == {version}
    assert "is not the latest version, run upgradesstables" in done(node.nodetool("verify", "-f", "-c", "fx", "dels"), 2).stderr
    done(node.nodetool("upgradesstables", "fx", "dels"))
    assert {file.name[:2] for file in data_files(directory)} == {"da"} and len(data_files(directory)) == 2
    done(node.nodetool("verify", "-f", "-c", "-e", "fx", "dels"))
    assert rows(node, "dels") == expected("dels")


def test_upgradesstables_writes_each_again(node, tmp_path):
    create(node, "dels")
    done(node.nodetool("import", "fx", "dels", str(incoming(tmp_path, "dels"))))
    directory = table_directory(node, "dels")
    before = data_files(directory)
    done(node.nodetool("upgradesstables", "fx", "dels"))
    assert data_files(directory) == before, "they are of the version that is written"
    done(node.nodetool("upgradesstables", "-a", "-t", "1000", "fx", "dels"))
    assert data_files(directory) == before, "none is so old"
    done(node.nodetool("upgradesstables", "-a", "-j", "1", "fx", "dels"))
    assert len(data_files(directory)) == 2 and not set(data_files(directory)) & set(before)
    assert rows(node, "dels") == expected("dels")
    assert "Upgrade sstables" in node.nodetool("compactionhistory").stdout
    done(node.nodetool("upgradesstables"))
    done(node.nodetool("verify", "-f", "-e", "fx", "dels"))


def test_recompress_writes_what_is_compressed_otherwise(node, tmp_path):
    create(node, "cmp_zstd_16k")
    done(node.nodetool("import", "fx", "cmp_zstd_16k", str(incoming(tmp_path, "cmp_zstd_16k"))))
    directory = table_directory(node, "cmp_zstd_16k")
    before = data_files(directory)
    done(node.nodetool("recompress_sstables", "fx", "cmp_zstd_16k"))
    assert data_files(directory) == before
    with connect(node) as cluster:
        cluster.connect().execute("ALTER TABLE fx.cmp_zstd_16k WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}")
    done(node.nodetool("recompress_sstables", "fx", "cmp_zstd_16k"))
    assert not set(data_files(directory)) & set(before)
    assert rows(node, "cmp_zstd_16k") == expected("cmp_zstd_16k")


def test_a_flipped_byte_is_found_and_scrubbed_away(node, tmp_path):
    table = "cmp_lz4_4k"
    create(node, table)
    done(node.nodetool("import", "fx", table, str(incoming(tmp_path, table))))
    directory = table_directory(node, table)
    [damaged] = data_files(directory)
    done(node.nodetool("verify", "-f", "fx", table))
    assert "verify is disabled unless" in done(node.nodetool("verify", "fx", table), 1).stdout
    flip(damaged, damaged.stat().st_size // 2)
    found = done(node.nodetool("verify", "-f", "fx", table), 2)
    assert found.stderr.startswith(f"error: Invalid SSTable {damaged}, please force a full repair"), found.stderr
    scrubbed = done(node.nodetool("scrub", "fx", table))
    assert "lost bytes" in scrubbed.stdout and str(damaged) in scrubbed.stdout, scrubbed.stdout
    done(node.nodetool("verify", "-f", "-e", "fx", table))
    kept, all_rows = rows(node, table), expected(table)
    assert 0 < len(kept) < len(all_rows) and all(row in all_rows for row in kept)
    assert damaged not in data_files(directory)
    [snapshot] = (directory / "snapshots").glob("pre-scrub-*")
    assert (snapshot / damaged.name).exists()
    assert "reinsert-overflowed-ttl" in done(node.nodetool("scrub", "-r", "fx", table), 1).stderr


def test_getsstables_by_hexadecimal_key(node, tmp_path):
    create(node, "kv_multi")
    done(node.nodetool("import", "fx", "kv_multi", str(incoming(tmp_path, "kv_multi"))))
    by_text = done(node.nodetool("getsstables", "fx", "kv_multi", "23")).stdout
    assert by_text and by_text == done(node.nodetool("getsstables", "-hf", "fx", "kv_multi", "00000017")).stdout
    assert done(node.nodetool("getsstables", "fx", "kv_multi", "123456789")).stdout == ""


def test_an_sstable_that_cannot_be_opened_stops_the_start_or_waits_for_scrub(node, tmp_path):
    create(node, "kv_multi")
    done(node.nodetool("import", "fx", "kv_multi", str(incoming(tmp_path, "kv_multi"))))
    directory = table_directory(node, "kv_multi")
    assert node.stop() == 0
    damaged = data_files(directory)[0]
    index = damaged.with_name(damaged.name.replace("Data.db", "Partitions.db"))
    flip(index, index.stat().st_size - 3)
    with pytest.raises(RuntimeError, match="fx.kv_multi cannot be opened"):
        node.start()
    assert str(index) in node.log_tail() and "nodetool scrub fx kv_multi" in node.log_tail()
    node.settings.append("disk_failure_policy=ignore")
    node.start()
    assert rows(node, "kv_multi") != expected("kv_multi")
    assert str(damaged) in done(node.nodetool("verify", "-f", "fx", "kv_multi"), 2).stderr
    scrubbed = done(node.nodetool("scrub", "fx", "kv_multi")).stdout
    assert str(damaged) in scrubbed and not damaged.exists()
    assert sorted(rows(node, "kv_multi"), key=str) == sorted(expected("kv_multi"), key=str)
    [snapshot] = (directory / "snapshots").glob("pre-scrub-*")
    assert (snapshot / damaged.name).exists()
    node.settings.remove("disk_failure_policy=ignore")
    assert node.stop() == 0
    node.start()
    assert rows(node, "kv_multi") == expected("kv_multi")
