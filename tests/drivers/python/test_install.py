"""What somebody installs: the container's entrypoint and its health check, a service manager, the image, the unit, examples."""

import ast
import hashlib
import json
import os
import pathlib
import re
import runpy
import shutil
import signal
import socket
import subprocess
import tarfile
import time

import pytest
import yaml

import server as helenus
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable

if os.environ.get("HELENUS_TEST_PEER", "helenus") != "helenus":
    pytest.skip("these are Helenus's own", allow_module_level=True)

ROOT = helenus.ROOT
EXAMPLES = ROOT / "examples"
SECONDS = 60
# nodes of one machine each have an address of their own, as their storage port is 7000
ADDRESS = "127.0.18.1"


def health(port):
    return subprocess.run([helenus.binary(), "health", "-h", "127.0.0.1", "-p", str(port)], capture_output=True, text=True, timeout=SECONDS)


def test_a_container_from_its_environment(tmp_path):
    """The environment of the official image, from the socket to the disk; systemd's datagrams beside it."""
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    manager.settimeout(SECONDS)
    port, admin = helenus.free_port(), helenus.free_port()
    variables = {
        "CASSANDRA_CLUSTER_NAME": "From the environment",
        "CASSANDRA_LISTEN_ADDRESS": ADDRESS,
        "CASSANDRA_RPC_ADDRESS": "127.0.0.1",
        "CASSANDRA_BROADCAST_RPC_ADDRESS": "127.0.0.1",
        "CASSANDRA_NUM_TOKENS": "3",
        "CASSANDRA_ENDPOINT_SNITCH": "GossipingPropertyFileSnitch",
        "CASSANDRA_DC": "north",
        "CASSANDRA_RACK": "r7",
        "MAX_HEAP_SIZE": "256M",
        "HEAP_NEWSIZE": "64M",
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
    }
    command = [helenus.binary(), "entrypoint", "cassandra", "-f", "--data-dir", str(tmp_path / "data"), "--port", str(port), "--admin-port", str(admin)]
    assert health(admin).returncode == 1, "nobody is there yet"
    with open(tmp_path / "log", "w") as log:
        node = subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.PIPE, stderr=log, text=True)
    assert node.stdout.readline().startswith("helenus ready:"), (tmp_path / "log").read_text()
    assert manager.recv(200).decode().startswith("READY=1")
    told = health(admin)
    assert (told.returncode, told.stdout) == (0, "running\n"), told
    with Cluster(["127.0.0.1"], port=port) as cluster:
        row = cluster.connect().execute("SELECT cluster_name, data_center, rack, tokens, listen_address FROM system.local").one()
    assert (row.cluster_name, row.data_center, row.rack, len(row.tokens), row.listen_address) == ("From the environment", "north", "r7", 3, ADDRESS)
    nodetool = [helenus.binary(), "nodetool", "-p", str(admin), "disablebinary"]
    assert subprocess.run(nodetool, timeout=SECONDS).returncode == 0
    assert health(admin).returncode == 1
    node.send_signal(signal.SIGTERM)
    assert manager.recv(200).decode().startswith("STOPPING=1")
    assert node.wait(SECONDS) == 0
    node.stdout.close()
    log = (tmp_path / "log").read_text()
    assert "HEAP_NEWSIZE is not needed" in log and "Startup complete" in log, log


def entered(tmp_path, name, address, variables, words=()):
    """A container from its environment: the process, and its port."""
    port, admin = helenus.free_port(), helenus.free_port()
    own = {"CASSANDRA_LISTEN_ADDRESS": address, "CASSANDRA_RPC_ADDRESS": "127.0.0.1", "CASSANDRA_BROADCAST_RPC_ADDRESS": "127.0.0.1", "MAX_HEAP_SIZE": "128M"}
    command = [helenus.binary(), "entrypoint", "cassandra", "--data-dir", str(tmp_path / name), "--port", str(port), "--admin-port", str(admin), *words]
    node = subprocess.Popen(command, env=os.environ | own | variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return node, port


def logs_in(port, password):
    cluster = Cluster(["127.0.0.1"], port=port, auth_provider=PlainTextAuthProvider("cassandra", password))
    try:
        cluster.connect().execute("SELECT role FROM system_auth.roles")
        return True
    except NoHostAvailable as error:
        assert "and/or password are incorrect" in str(error), error
        return False
    finally:
        cluster.shutdown()


def until_logs_in(port, password):
    """The superuser is made while the node serves already."""
    end = time.monotonic() + SECONDS
    while not logs_in(port, password):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_the_first_password_of_a_container(tmp_path):
    """Given as a file, or made and printed once; the default password is no way in; a second start changes nothing."""
    (tmp_path / "secret").write_text("ring of one\n")
    given, port = entered(tmp_path, "given", "127.0.18.2", {"HELENUS_PASSWORD_FILE": str(tmp_path / "secret")})
    made, other_port = entered(tmp_path, "made", "127.0.18.3", {}, ["--set", "authenticator=PasswordAuthenticator"])
    try:
        lines = [made.stdout.readline(), made.stdout.readline()]
        [password] = [line.rsplit(" ", 1)[1].strip() for line in lines if line.startswith("helenus: password of the superuser 'cassandra', shown this once: ")]
        until_logs_in(other_port, password)
        assert given.stdout.readline().startswith("helenus ready:")
        until_logs_in(port, "ring of one")
        assert not logs_in(port, "cassandra") and not logs_in(other_port, "cassandra")
    finally:
        ends = [node.terminate() or node.communicate(timeout=SECONDS) for node in (given, made)]
    assert given.returncode == made.returncode == 0, ends
    assert password not in ends[1][1], "the log, which others read, does not have it"
    made, other_port = entered(tmp_path, "made", "127.0.18.3", {"HELENUS_PASSWORD": "another"})
    try:
        assert made.stdout.readline().startswith("helenus ready:")
        until_logs_in(other_port, password)
        assert not logs_in(other_port, "another")
    finally:
        made.terminate()
        out, log = made.communicate(timeout=SECONDS)
    assert made.returncode == 0 and not out and "there are roles already: no first password is set" in log, (out, log)


@pytest.mark.parametrize(
    "variables, words, why",
    [
        ({"HELENUS_PASSWORD": "cassandra"}, [], "HELENUS_PASSWORD: cassandra is the password that everybody tries first"),
        ({"HELENUS_PASSWORD": "a", "HELENUS_PASSWORD_FILE": "/dev/null"}, [], "both given"),
        ({"HELENUS_PASSWORD_FILE": "/nowhere"}, [], "HELENUS_PASSWORD_FILE: "),
        ({"HELENUS_PASSWORD": "a"}, ["--set", "authenticator=AllowAllAuthenticator", "--set", "authorizer=AllowAllAuthorizer"], "a first password is given, but"),
    ],
)
def test_passwords_that_are_refused(tmp_path, variables, words, why):
    node, _ = entered(tmp_path, "data", "127.0.18.4", variables, words)
    _, log = node.communicate(timeout=SECONDS)
    assert node.returncode == 1 and why in log, log


def test_a_link_with_the_name_of_nodetool(tmp_path):
    (tmp_path / "nodetool").symlink_to(helenus.binary())
    told = subprocess.run([tmp_path / "nodetool", "--help"], capture_output=True, text=True, timeout=SECONDS)
    assert "compactionstats" in told.stdout


def test_the_doctor_of_a_bad_machine(tmp_path):
    """A machine in a directory: each finding has its level and what to do, and the exit code says that something is to be mended."""
    files = {"proc/self/limits": "Max open files            256                  256                  files\n", "proc/meminfo": "MemTotal:       1024000 kB\nSwapTotal:       10 kB\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [helenus.binary(), "doctor", "--json", "--root", str(tmp_path), "--data-dir", str(tmp_path / "data"), "--memory", "2G"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    levels = {finding["check"]: finding["level"] for finding in json.loads(told.stdout)["findings"]}
    assert told.returncode == 1 and (levels["open files"], levels["memory"], levels["swap"]) == ("FAIL", "FAIL", "WARN"), told.stdout


def test_the_image_is_made_twice_the_same(tmp_path):
    """Of a program that only tells its version: layout, digests, user, what is in it."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho helenus 9.9\n")
    program.chmod(0o755)
    images = [tmp_path / name for name in ("one.tar", "two.tar")]
    for image in images:
        subprocess.run([ROOT / "dist" / "image", program, image], env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}, check=True, capture_output=True, timeout=SECONDS)
    assert images[0].read_bytes() == images[1].read_bytes()
    with tarfile.open(images[0]) as image:
        blobs = {name: image.extractfile(name).read() for name in image.getnames() if image.getmember(name).isfile()}
        read = lambda described: blobs["blobs/sha256/" + described["digest"].removeprefix("sha256:")]
        for name, data in blobs.items():
            assert not name.startswith("blobs/sha256/") or name.endswith(hashlib.sha256(data).hexdigest())
        manifest = json.loads(read(json.loads(blobs["index.json"])["manifests"][0]))
        config = json.loads(read(manifest["config"]))["config"]
        layer = read(manifest["layers"][0])
    assert (config["User"], config["Entrypoint"], config["Cmd"]) == ("999:999", ["/usr/bin/helenus", "entrypoint"], ["cassandra", "-f"])
    assert set(config["ExposedPorts"]) == {"7000/tcp", "9042/tcp", "9180/tcp"} and "/var/lib/cassandra" in config["Volumes"]
    (tmp_path / "layer").write_bytes(layer)
    with tarfile.open(tmp_path / "layer") as root:
        assert root.getmember("usr/bin/nodetool").linkname == "helenus" and root.getmember("usr/bin/helenus").mode == 0o755
        assert root.getmember("etc/ssl/certs/ca-certificates.crt").size > 0
        data = root.getmember("var/lib/cassandra")
        assert (data.uid, data.gid) == (999, 999)


def test_an_image_without_certificate_authorities_is_not_made(tmp_path):
    main = runpy.run_path(str(ROOT / "dist" / "image"))["main"]
    main.__globals__["CERTIFICATES"] = str(tmp_path / "nothing")
    with pytest.raises(SystemExit, match="certificate authorities"):
        main("program", str(tmp_path / "image.tar"))


def test_the_files_of_the_packages():
    linux = ROOT / "dist" / "linux"
    package = yaml.safe_load((linux / "nfpm.yaml").read_text())
    for content in package["contents"]:
        source = content["src"]
        assert content.get("type") == "symlink" or "${STAGE}" in source or (ROOT / source).is_file(), source
    for script in package["scripts"].values():
        subprocess.run(["sh", "-n", ROOT / script], check=True)
        assert os.access(ROOT / script, os.X_OK), script
    unit = (linux / "helenus.service").read_text()
    [start] = re.findall(r"^ExecStart=/usr/bin/(.*)$", unit, re.M)
    assert "Type=notify" in unit and "User=cassandra" in unit
    checked = subprocess.run([helenus.binary(), "check", "--config", linux / "cassandra.yaml"], capture_output=True, text=True, timeout=SECONDS)
    assert checked.returncode == 0 and checked.stdout.endswith("3 honoured, 0 without effect, 0 refused\n"), checked.stdout
    words = start.replace("$HELENUS_OPTIONS", "").replace("/etc/cassandra", str(linux)).split()
    helped = subprocess.run([helenus.binary(), *words[1:], "--help"], capture_output=True, text=True, timeout=SECONDS)
    assert words[0] == "helenus" and helped.returncode == 0, helped.stderr


def test_compose_and_kubernetes():
    """Their syntax, and that each variable is one that the entrypoint knows. They were not run: this needs their daemons."""
    source = (ROOT / "crates/helenus/src/entrypoint.rs").read_text()
    known = set(re.findall(r'\("([A-Z_]+)", Meaning', source))
    compose = yaml.safe_load((EXAMPLES / "compose.yaml").read_text())
    assert len(compose["services"]) == 3
    for service in compose["services"].values():
        assert set(service["environment"]) <= known
        [volume] = service["volumes"]
        assert volume.split(":")[0] in compose["volumes"]
    objects = {found["kind"]: found for found in yaml.safe_load_all((EXAMPLES / "kubernetes" / "helenus.yaml").read_text())}
    assert set(objects) == {"Service", "PodDisruptionBudget", "StatefulSet"}
    spec = objects["StatefulSet"]["spec"]
    assert spec["serviceName"] == objects["Service"]["metadata"]["name"]
    [container] = spec["template"]["spec"]["containers"]
    assert {variable["name"] for variable in container["env"]} <= known
    assert {port["containerPort"] for port in container["ports"]} == {port["port"] for port in objects["Service"]["spec"]["ports"]}
    assert container["volumeMounts"][0]["name"] == spec["volumeClaimTemplates"][0]["metadata"]["name"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["exec"]["command"][0] in ("/usr/bin/helenus", "/usr/bin/nodetool")


CHECKERS = {".go": ["gofmt", "-e", "-l"], ".js": ["node", "--check"], ".java": ["javac", "-d", "OUT"]}


def checked_recipes():
    """Those of languages whose tools are on this machine, as with the drivers' tests."""
    recipes = sorted((EXAMPLES / "testcontainers").iterdir())
    return [path for path in recipes if path.suffix == ".py" or shutil.which(CHECKERS[path.suffix][0])]


@pytest.mark.parametrize("example", checked_recipes(), ids=lambda path: path.name)
def test_recipes_of_testcontainers(example, tmp_path):
    """Their syntax. They were not run: this needs a container daemon."""
    if example.suffix == ".py":
        ast.parse(example.read_text())
        return
    checker = CHECKERS[example.suffix]
    told = subprocess.run([*(word.replace("OUT", str(tmp_path)) for word in checker), example], capture_output=True, text=True, timeout=SECONDS)
    if example.suffix == ".java":
        # a parser's error ends javac before it looks for classes, which are not there
        errors = [line for line in told.stderr.splitlines() if ": error:" in line]
        assert errors and all(re.search("does not exist|cannot find symbol|static import only", line) for line in errors), told.stderr
    else:
        assert told.returncode == 0 and not told.stdout, told.stderr + told.stdout


def test_every_recipe_is_of_a_language():
    assert {path.suffix for path in pathlib.Path(EXAMPLES / "testcontainers").iterdir()} == {".py", *CHECKERS}
