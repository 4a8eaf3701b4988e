"""Keys and certificates of nodes of a ring, made anew for a test, and the settings that encrypt links with them.

Both kinds of node read the same PEM files. Standing: used by the tests of rings beside it; needs the openssl command.
"""

import subprocess

# internode_encryption, and where the nodes of a ring stand so that the links between them are encrypted by it: data center and rack
# of the first node and of the others. None: all in one place.
PLACES = {"all": None, "dc": (("dc1", "r1"), ("dc2", "r1")), "rack": (("dc1", "r1"), ("dc1", "r2"))}


def make(directory):
    """An authority, and a key with a certificate signed by it; gives (file with the key and its certificate, file of the authority)."""
    directory.mkdir(parents=True, exist_ok=True)

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=directory)

    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *curve, "-keyout", "authority.key", "-out", "authority.pem", "-days", "30", "-subj", "/CN=authority of a test")
    openssl("req", *curve, "-keyout", "node.key", "-out", "node.request", "-subj", "/CN=node of a test")
    (directory / "extensions").write_text("basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=DNS:node.test\n")
    openssl("x509", "-req", "-in", "node.request", "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial", "-days", "30",
            "-extfile", "extensions", "-out", "node.crt")
    # Cassandra's reader of PEM takes the key in PKCS #8, which `req` writes
    (directory / "node.pem").write_text((directory / "node.key").read_text() + (directory / "node.crt").read_text())
    return directory / "node.pem", directory / "authority.pem"


def options(scope, identity, authority):
    """The value of server_encryption_options with this internode_encryption; both ends of a link show their certificates."""
    return (
        "{internode_encryption: %s, require_client_auth: true, optional: false, "
        "ssl_context_factory: {class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}, "
        "keystore: '%s', truststore: '%s', outbound_keystore: '%s'}" % (scope, identity, authority, identity)
    )


def encrypt(ring, scope):
    """The links of a ring that has not been started are encrypted. Gives the two files of `make`."""
    identity, authority = make(ring.scratch / "certificates")
    ring.settings["server_encryption_options"] = options(scope, identity, authority)
    if PLACES[scope]:
        first, others = PLACES[scope]
        for node in ring.nodes:
            node.place = others if node is not ring.nodes[0] else first
    return identity, authority
