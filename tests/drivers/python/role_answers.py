"""CQL scripts of several users and their answers as text: shared by the recorder (tests/oracle/record_roles.py) and the test.

A line `-- as USER` lets USER ask from there on; his password is his name. `LOGIN USER PASSWORD` as a statement says whether that
opens a connection. What a statement is warned of stands before its answer.
"""

import re

import answers
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy

DIRECTORY = answers.DIRECTORY / "roles"
# who has to log in, what he may do, and from where; Cassandra's caches are off; columns can be masked
SETTINGS = [
    "authenticator=PasswordAuthenticator",
    "authorizer=CassandraAuthorizer",
    "network_authorizer=CassandraNetworkAuthorizer",
    "permissions_validity=0ms",
    "roles_validity=0ms",
    "credentials_validity=0ms",
    "dynamic_data_masking_enabled=true",
]
SUPERUSER = "cassandra"
SECONDS = 30


def statements(text):
    """Pairs of who asks and what."""
    user, lines, found = SUPERUSER, [], []
    for line in text.splitlines():
        if line.startswith("-- as "):
            user = line.removeprefix("-- as ").strip()
        elif not line.startswith("--"):
            lines.append(line)
            if line.endswith(";"):
                found.append((user, "\n".join(lines).strip().removesuffix(";")))
                lines = []
    assert not "".join(lines).strip(), lines
    return found


class Users:
    """Connections to one server, one a user."""

    def __init__(self, host, port):
        self.host, self.port, self.clusters = host, port, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for cluster, _session in self.clusters.values():
            cluster.shutdown()

    def connect(self, user, password):
        profile = ExecutionProfile(
            load_balancing_policy=RoundRobinPolicy(), retry_policy=FallthroughRetryPolicy(), request_timeout=SECONDS
        )
        cluster = Cluster(
            [self.host],
            port=self.port,
            auth_provider=PlainTextAuthProvider(user, password),
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            schema_metadata_enabled=False,
            token_metadata_enabled=False,
            schema_event_refresh_window=-1,
            max_schema_agreement_wait=0,
            connect_timeout=SECONDS,
        )
        try:
            return cluster, cluster.connect()
        except BaseException:
            cluster.shutdown()
            raise

    def session(self, user):
        if user not in self.clusters:
            self.clusters[user] = self.connect(user, user)
        return self.clusters[user][1]

    def login(self, user, password):
        try:
            cluster, _session = self.connect(user, password)
        except NoHostAvailable as refused:
            (error,) = refused.errors.values()
            return "error " + re.sub(r"^.*?(Error from server)", r"\1", " ".join(str(error).split()))
        cluster.shutdown()
        return "done"

    def answer(self, user, statement):
        words = statement.split(" ", 2)
        if words[0] == "LOGIN":
            return self.login(words[1], words[2].strip("'"))
        try:
            session = self.session(user)
        except NoHostAvailable as refused:
            return f"error {user} cannot connect: {refused}"
        return answers.answer(session, statement, with_warnings=True)


def clean(users):
    """Nothing but the superuser."""
    session = users.session(SUPERUSER)
    for keyspace in ("answers", "others"):
        session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")
    for row in session.execute("SELECT identity FROM system_auth.identity_to_role"):
        session.execute(f"DROP IDENTITY '{row.identity}'")
    for row in session.execute("SELECT role FROM system_auth.roles"):
        if row.role != SUPERUSER:
            session.execute("DROP ROLE '%s'" % row.role.replace("'", "''"))
    session.execute("TRUNCATE system_auth.role_permissions")
    session.execute("TRUNCATE system_auth.resource_role_permissons_index")


def run(users, script):
    """Each statement of the script with its answer, in keyspaces made for it."""
    clean(users)
    session = users.session(SUPERUSER)
    for keyspace in ("answers", "others"):
        session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    session.execute("USE answers")
    for user, statement in statements(script.read_text(encoding="utf-8")):
        yield user, statement, users.answer(user, statement)
    clean(users)
