"""The commands of the documents, carried out: README.md and the pages of docs/, which dist/site makes a site of.

A command is a line of a block or a code span that begins with `helenus `. Each has an entry in COMMANDS that says how it is
carried out here: free ports in place of the default ones, a scratch directory in place of /var/lib/cassandra, fewer rows.
A command without an entry fails the test, and so does an entry whose command is gone.
"""

import contextlib
import functools
import io
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import time
import urllib.request

import pytest

import server as helenus
import shells
from test_directory import FORMATS, extracted, listing

if os.environ.get("HELENUS_TEST_PEER", "helenus") != "helenus":
    pytest.skip("these are Helenus's commands", allow_module_level=True)

ROOT = helenus.ROOT
DOCUMENTS = ["README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
SECONDS = 120


def blocks(document):
    return [(kind, text) for kind, text in BLOCK.findall((ROOT / document).read_text())]


def without_comment(line):
    return re.sub(r"\s+", " ", re.sub(r"\s#.*", "", line)).strip()


def commands(document):
    text = (ROOT / document).read_text()
    lines = [line for _, block in blocks(document) for line in block.splitlines()]
    prose = BLOCK.sub("", text)
    lines += [line.strip() for line in prose.splitlines() if line.startswith("    ")]
    lines += [span.replace("\n", " ") for span in re.findall(r"`([^`]+)`", prose)]
    return {without_comment(line) for line in lines if line.startswith("helenus ") and not line.startswith("helenus ready:")}


class Scene:
    """A node with the README's keyspace and files of its table, a directory of Cassandra, a damaged file."""

    def __init__(self, path):
        self.path = path
        self.node = helenus.Server(path / "data").start()

    def run(self, *words, code=0):
        done = subprocess.run([helenus.binary(), *map(str, words)], capture_output=True, text=True, timeout=SECONDS, cwd=self.path)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout

    def table(self):
        [directory] = (self.path / "data" / "data" / "demo").glob("greetings-*")
        return directory

    def data_file(self):
        return sorted(self.table().glob("*-Data.db"))[0]

    def copy(self, name):
        """The table's files where no node has them open."""
        target = self.path / name
        shutil.copytree(self.table(), target, dirs_exist_ok=True)
        return sorted(target.glob("*-Data.db"))[0]

    def stress(self, *words):
        at = ["-node", self.node.host, "-port", f"native={self.node.port}"]
        return self.run("stress", *words, *at)


def serve(path, *flags):
    """A start on free ports, until it says that it is ready; then SIGTERM."""
    ports = ["--port", str(helenus.free_port()), "--admin-port", str(helenus.free_port())]
    process = subprocess.Popen([helenus.binary(), *flags, *ports], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=path)
    line = process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=SECONDS)
    assert line.startswith("helenus ready: CQL on 127.0.0.1:"), errors
    assert process.returncode == 0, errors
    return errors


def look_at_cassandras_directory(scene):
    directory = extracted(FORMATS[0], scene.path / "looked-at")
    before = listing(directory)
    assert "Cassandra" in serve(scene.path, "--data-dir", str(directory), "--read-only")
    assert listing(directory) == before


def serve_cassandras_directory(scene):
    serve(scene.path, "--data-dir", str(extracted(FORMATS[0], scene.path / "served")))


def dump(scene):
    [partition] = json.loads(scene.run("sstable", "dump", scene.data_file()))
    assert partition["partition"]["key"] == ["1"]
    assert len(scene.run("sstable", "dump", "-l", scene.data_file()).splitlines()) == 1
    assert scene.run("sstable", "dump", scene.data_file(), "-k", "1") == scene.run("sstable", "dump", scene.data_file())


def upgrade(scene):
    made = scene.path / "upgraded"
    scene.run("sstable", "upgrade", "--to", "nb", "--output", made, scene.copy("to-upgrade"))
    assert list(made.glob("**/nb-*-big-Data.db"))


def salvage(scene):
    made = scene.path / "salvaged"
    scene.run("sstable", "salvage", "--output", made, scene.copy("to-salvage"))
    assert list(made.glob("**/*-Data.db"))


def split(scene):
    assert "size" in scene.run("sstable", "split", "--help").lower()


PROFILE = """
keyspace: loaded
keyspace_definition: "CREATE KEYSPACE loaded WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
table: t
table_definition: CREATE TABLE t (k text, c int, v text, PRIMARY KEY (k, c))
columnspec: [{name: k, population: seq(1..20)}, {name: c, cluster: fixed(3)}]
insert: {partitions: fixed(1), batchtype: UNLOGGED, select: fixed(1)/1}
queries: {QUERY: {cql: SELECT * FROM t WHERE k = ? LIMIT 2, fields: samerow}}
"""


def user_profile(scene):
    (scene.path / "P.yaml").write_text(PROFILE)
    scene.stress("user", "profile=P.yaml", "ops(insert=1)", "n=50", "no-warmup", "-rate", "threads=2")
    scene.stress("user", "profile=P.yaml", "ops(insert=1,validate=1,QUERY=4)", "n=50", "no-warmup", "-rate", "threads=2")


def compared(name):
    def run(scene):
        graph = ["-graph", "file=report.html", f"revision={name}", "-log", f"json={name}.json"]
        scene.stress("write", "n=100", "no-warmup", "-rate", "threads=2", *graph)
        assert name in (scene.path / "report.html").read_text() and (scene.path / f"{name}.json").exists()

    return run


def nodetool(*words):
    return lambda scene: scene.run("nodetool", "-p", scene.node.admin_port, *words)


def drained(scene):
    node = helenus.Server(scene.path / "to-drain").start()
    scene.run("nodetool", "-p", node.admin_port, "drain")
    assert node.stop() == 0


def sstable(*words):
    return lambda scene: scene.run("sstable", *words, scene.copy("files").parent)


def load_and_back_up(scene, ports):
    """The scene's table is streamed into the ring by hand, and each node's part of it is brought into a store."""
    port, admin = ports[1], ["-p", ports[3]]
    made = "CREATE KEYSPACE demo WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};"
    made += "CREATE TABLE demo.greetings (id int PRIMARY KEY, words text);"
    assert shells.run("127.0.77.1", port, made, scene.path)[0] == 0
    directory = scene.copy("to-load/demo/greetings").parent
    scene.run("sstable", "load", directory, "--nodes", "127.0.77.1", "--port", port, "--no-progress")
    assert "believed" in shells.run("127.0.77.2", port, "SELECT * FROM demo.greetings;", scene.path)[1]
    told = scene.run("ring", "snapshot", "--tag", "monday", "--host", "127.0.77.2", *admin)
    assert told.count(": snapshot monday of ") == 3, told
    for number in (1, 2, 3):
        node = ["--host", f"127.0.77.{number}", *admin]
        scene.run("backup", "create", "--tag", "monday", "--data-dir", f"n{number}", "--to", "store", *node)
    assert scene.run("backup", "list", "--from", "store").count("monday") == 3
    scene.run("backup", "verify", "--tag", "monday", "--from", "store")
    info = scene.run("nodetool", "-h", "127.0.77.1", *("-p", ports[3]), "info")
    [host_id] = re.findall(r"^ID +: (\S+)", info, re.M)
    scene.run("backup", "restore", "--from", "store", "--tag", "monday", "--host-id", host_id, "--data-dir", "restored")
    assert (scene.path / "restored" / "data" / "system").is_dir()
    # a ring that has the tables already is told so; the backup makes them
    assert shells.run("127.0.77.1", port, "DROP KEYSPACE demo;", scene.path)[0] == 0
    scene.run("backup", "load", "--from", "store", "--tag", "monday", "--nodes", "127.0.77.1", "--port", port, "--scratch", "scratch", "demo")


@functools.cache
def ring_by_hand(scene):
    """The three commands for a ring, on addresses and ports of this test."""
    commands_of_ring = [line for line in commands("README.md") if "--seeds 127.0.0.1" in line]
    assert len(commands_of_ring) == 3
    ports = ["--port", helenus.free_port(), "--admin-port", helenus.free_port(), "--set", f"storage_port={helenus.free_port()}"]
    nodes = []
    try:
        for command in sorted(commands_of_ring):
            words = command.replace(" 127.0.0.", " 127.0.77.").split()[1:]
            line = [helenus.binary(), *words, "--memory", "128M", *map(str, ports)]
            log = (scene.path / f"ring-{len(nodes) + 1}.log").open("w")
            nodes.append(subprocess.Popen(line, stdout=subprocess.PIPE, stderr=log, text=True, cwd=scene.path))
        assert all(node.stdout.readline().startswith("helenus ready:") for node in nodes)
        until = time.monotonic() + SECONDS
        while (status := scene.run("nodetool", "-h", "127.0.77.2", "-p", ports[3], "status")).count("UN  127.0.77.") < 3:
            assert time.monotonic() < until, status
            time.sleep(0.1)
        load_and_back_up(scene, ports)
        # a keyspace of one copy: the node that leaves hands on what it has
        scene.run("nodetool", "-h", "127.0.77.3", "-p", ports[3], "repair", "--full")
        scene.run("nodetool", "-h", "127.0.77.3", "-p", ports[3], "decommission", "--force")
        assert "127.0.77.3" not in scene.run("nodetool", "-h", "127.0.77.2", "-p", ports[3], "status")
    except AssertionError:
        for log in sorted(scene.path.glob("ring-*.log")):
            print(log.name, log.read_text()[-4000:], sep="\n")
        raise
    finally:
        for node in nodes:
            node.terminate()
            node.wait(timeout=SECONDS)


@functools.cache
def ring_up(scene):
    words = ["ring", "up", "3", "--first", "201", "--memory", "128M", "--set", f"native_transport_port={helenus.free_port()}"]
    words += ["--set", f"storage_port={helenus.free_port()}"]
    process = subprocess.Popen([helenus.binary(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=scene.path)
    line = process.stdout.readline()
    told = scene.run("ring", "down", code=0 if line else 1)
    _, errors = process.communicate(timeout=SECONDS)
    assert told == "helenus ring down: the ring in helenus-ring has ended\n", (told, errors)
    assert line == "helenus ring ready: CQL on 127.0.0.201, 127.0.0.202, 127.0.0.203\n", errors
    assert process.returncode == 0, errors


def looked_at(*words):
    """The doctor of the machine on which the test runs finds what it finds: its report counts, not its exit code."""

    def run(scene):
        ports = ["--port", str(helenus.free_port()), "--admin-port", str(helenus.free_port())]
        command = [helenus.binary(), "doctor", *words, "--data-dir", str(scene.path / "doctor"), *ports]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode in (0, 1) and "open files" in done.stdout and not done.stderr, done

    return run


def checked(scene):
    (scene.path / "cassandra.yaml").write_text("cluster_name: a\nnum_token: 3\n")
    told = scene.run("check", "--config", scene.path / "cassandra.yaml", code=1)
    assert told.endswith("1 honoured, 0 without effect, 1 refused\n") and "did you mean num_tokens" in told


def manuals(scene):
    scene.run("man", scene.path / "man")
    assert "compactionstats" in (scene.path / "man" / "helenus-nodetool.1").read_text()


def helps(*words):
    """A command named without its operands: its help says what they are."""
    return lambda scene: scene.run(*words, "--help")


def shell(scene):
    done = subprocess.run(
        [helenus.binary(), "shell"],
        input="SELECT key FROM system.local;",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={"HOME": str(scene.path), "CQLSH_PORT": str(scene.node.port)},
    )
    assert done.returncode == 0 and "(1 rows)" in done.stdout, done.stderr


def first_rows(scene):
    """The statements of docs/getting-started.md."""
    [statements] = [text for _, text in blocks("docs/getting-started.md") if "CREATE KEYSPACE" in text]
    code, told = shells.run(scene.node.host, scene.node.port, statements, scene.path)
    assert code == 0 and "believed" in told, told
    assert "notes" in scene.run("nodetool", "-p", scene.node.admin_port, "tablestats", "first")


COMMANDS = {
    "helenus --data-dir /var/lib/cassandra --read-only": look_at_cassandras_directory,
    "helenus --data-dir /var/lib/cassandra": serve_cassandras_directory,
    "helenus --data-dir n1 --listen 127.0.0.1 --seeds 127.0.0.1 --cluster-name demo": ring_by_hand,
    "helenus --data-dir n2 --listen 127.0.0.2 --seeds 127.0.0.1 --cluster-name demo": ring_by_hand,
    "helenus --data-dir n3 --listen 127.0.0.3 --seeds 127.0.0.1 --cluster-name demo": ring_by_hand,
    "helenus nodetool -h 127.0.0.2 status": ring_by_hand,
    "helenus nodetool repair --full": ring_by_hand,
    "helenus nodetool decommission": ring_by_hand,
    "helenus sstable load DIR --nodes HOST": ring_by_hand,
    "helenus ring snapshot": ring_by_hand,
    "helenus backup create": ring_by_hand,
    "helenus ring snapshot --tag monday": ring_by_hand,
    "helenus backup create --tag monday --data-dir DIR --to PLACE": ring_by_hand,
    "helenus backup list --from PLACE": ring_by_hand,
    "helenus backup verify --tag monday --from PLACE": ring_by_hand,
    "helenus backup restore --from PLACE --tag monday --host-id ID --data-dir DIR": ring_by_hand,
    "helenus backup load --from PLACE --tag monday --nodes HOST --scratch DIR [KEYSPACE…]": ring_by_hand,
    "helenus serve --data-dir DIR …": lambda scene: serve(scene.path, "serve", "--data-dir", "served-again"),
    "helenus sstable load": ring_by_hand,
    "helenus backup": helps("backup"),
    "helenus doctor": looked_at(),
    "helenus doctor --json": looked_at("--json"),
    "helenus check --config cassandra.yaml": checked,
    "helenus health": lambda scene: scene.run("health", "-p", scene.node.admin_port),
    "helenus completions bash": lambda scene: scene.run("completions", "bash"),
    "helenus man DIR": manuals,
    "helenus ring up 3": ring_up,
    "helenus ring down": ring_up,
    "helenus nodetool status": nodetool("status"),
    "helenus nodetool tablestats first": first_rows,
    "helenus nodetool info": nodetool("info"),
    "helenus nodetool ring": nodetool("ring"),
    "helenus nodetool drain": drained,
    "helenus nodetool tpstats": nodetool("tpstats"),
    "helenus nodetool netstats": nodetool("netstats"),
    "helenus nodetool compactionstats": nodetool("compactionstats"),
    "helenus nodetool compact": nodetool("compact", "demo"),
    "helenus nodetool garbagecollect": nodetool("garbagecollect", "demo"),
    "helenus nodetool scrub": nodetool("scrub", "demo"),
    "helenus nodetool tablehistograms": nodetool("tablehistograms"),
    "helenus nodetool tombstones KEYSPACE TABLE": nodetool("tombstones", "demo", "greetings"),
    "helenus nodetool profile": nodetool("profile", "-d", "1"),
    "helenus nodetool listsnapshots": nodetool("listsnapshots"),
    "helenus nodetool clearsnapshot --all": nodetool("clearsnapshot", "--all"),
    "helenus nodetool": helps("nodetool"),
    "helenus shell": shell,
    "helenus shell --help": helps("shell"),
    "helenus sstable VERB": helps("sstable"),
    "helenus sstable dump da-1-bti-Data.db | jq …": dump,
    "helenus sstable metadata da-1-bti-Data.db": lambda scene: scene.run("sstable", "metadata", scene.data_file()),
    "helenus sstable list data/demo/greetings-*/": sstable("list"),
    "helenus sstable tombstones data/demo/greetings-*/": sstable("tombstones"),
    "helenus sstable verify -e data/demo/greetings-*/": sstable("verify", "-e"),
    "helenus sstable upgrade --to nb --output DIR FILE": upgrade,
    "helenus sstable salvage --output DIR FILE": salvage,
    "helenus sstable tombstones [-g GC_GRACE_SECONDS] [-n TOP] FILES": sstable("tombstones", "-g", "10", "-n", "3"),
    "helenus sstable list --txn [all\\|tmp\\|final]": sstable("list", "--txn", "all"),
    "helenus sstable dump": dump,
    "helenus sstable metadata": sstable("metadata"),
    "helenus sstable verify": sstable("verify"),
    "helenus sstable list": sstable("list"),
    "helenus sstable tombstones": sstable("tombstones"),
    "helenus sstable split": split,
    "helenus sstable upgrade": upgrade,
    "helenus sstable salvage": salvage,
    "helenus shell": lambda scene: scene.run("shell", code=1),
    "helenus stress": helps("stress", "help"),
    "helenus stress help": lambda scene: scene.run("stress", "help"),
    "helenus stress write n=1m -rate threads=64": lambda scene: scene.stress("write", "n=500", "-rate", "threads=4"),
    "helenus stress read n=1m -pop seq=1..1m -rate threads=64": lambda scene: scene.stress("read", "n=500", "-pop", "seq=1..500", "-rate", "threads=4"),
    "helenus stress mixed ratio(write=1,read=3) duration=60s -rate threads=64 fixed=20000/s": lambda scene: scene.stress(
        "mixed", "ratio(write=1,read=3)", "duration=1s", "-rate", "threads=4", "fixed=200/s", "-pop", "seq=1..500"
    ),
    "helenus stress user profile=P.yaml ops(insert=1,validate=1,QUERY=4) duration=60s -rate threads=32": user_profile,
    "helenus stress write n=1m no-warmup -rate threads=64 -node HOST_OF_CASSANDRA -graph file=report.html revision=cassandra -log json=cassandra.json": compared("cassandra"),
    "helenus stress write n=1m no-warmup -rate threads=64 -node HOST_OF_HELENUS -graph file=report.html revision=helenus -log json=helenus.json": compared("helenus"),
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    scene = Scene(tmp_path_factory.mktemp("documents"))
    [session] = [text for _, text in blocks("README.md") if "cqlsh>" in text]
    script = "\n".join(line.removeprefix("cqlsh> ") for line in session.splitlines() if line.startswith("cqlsh> ")) + "\n"
    code, told = shells.run(scene.node.host, scene.node.port, script, scene.path)
    assert code == 0 and "believed" in told and "(1 rows)" in told, told
    assert scene.node.nodetool("flush").returncode == 0
    yield scene
    assert scene.node.stop() == 0


def test_every_command_has_its_run():
    written = set().union(*map(commands, DOCUMENTS))
    assert written == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(scene, command):
    COMMANDS[command](scene)


def test_the_first_minute(scene, tmp_path):
    """`cargo run --release` is the program without a word: a node with its data in ./helenus-data."""
    assert "cargo run --release\n" in [text for _, text in blocks("README.md")]
    serve(tmp_path)
    assert (tmp_path / "helenus-data" / "data" / "system_schema").is_dir()
    [program] = [text for kind, text in blocks("README.md") if kind == "python"]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program.replace('["127.0.0.1"]', f'["127.0.0.1"], port={scene.node.port}'), {})
    assert out.getvalue() == "Row(words='believed')\n"


@pytest.mark.parametrize("setting", sorted(set(re.findall(r"--set\s+([\w.]+=\w+)", (ROOT / "README.md").read_text())) - {"key=value", "key.sub=value"}))
def test_settings_of_the_readme(setting, tmp_path):
    serve(tmp_path, "--set", setting)


def test_flags_of_the_readme(tmp_path):
    listed = subprocess.run([helenus.binary(), "--help"], capture_output=True, text=True, timeout=SECONDS).stdout
    of_others = {"--help", "--no-default-features", "--format"}  # cargo's, and of helenus shell
    for flag in set(re.findall(r"`(--[a-z-]+)", (ROOT / "README.md").read_text())) - of_others:
        assert flag in listed, flag
    assert all(f"\n  {word} " in listed for word in ("shell", "doctor", "check", "health")), listed
    assert "entrypoint" not in listed, "a word for images alone is not offered"


def test_verbs_of_the_readme(scene):
    [row] = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| tools |")]
    for verb in re.findall(r"`(?:helenus nodetool )?(\w+)`", row):
        assert scene.node.nodetool(verb).returncode == 0, verb


def test_addresses_of_the_documents(scene):
    """Each address of the admin port that a document names answers."""
    addresses = {found for document in DOCUMENTS for found in re.findall(r"http://127\.0\.0\.1:9180(/[\w/?=.-]*)", (ROOT / document).read_text())}
    assert {"/", "/metrics", "/api/v0/metadata/endpoints"} <= addresses
    for path in addresses:
        with urllib.request.urlopen(f"http://{scene.node.host}:{scene.node.admin_port}{path}", timeout=SECONDS) as answer:
            assert answer.status == 200, path


def test_the_site_has_every_page():
    site = runpy.run_path(str(ROOT / "dist" / "site"))
    assert site["problems"]() == []
    assert "[x](https://github.com/helenus-db/helenus/tree/main/examples)" in site["with_repository"]("install.md", "[x](../examples/)")


def test_metrics_of_the_readme():
    """The one port that README.md names is the default of --admin-port."""
    [port] = set(re.findall(r"http://127\.0\.0\.1:(\d+)/metrics", (ROOT / "README.md").read_text()))
    listed = subprocess.run([helenus.binary(), "--help"], capture_output=True, text=True, timeout=SECONDS).stdout
    assert f"[default: {port}]" in listed
