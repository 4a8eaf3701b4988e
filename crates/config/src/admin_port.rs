//! `admin_address` and `admin_encryption_options`: keys of ours, for the port of metrics, nodetool
//! and the console.
//!
//! The port has no key in Cassandra, whose operators connect over JMX. Off the loopback it must be
//! encrypted, and who calls must be known: by a role's password or by a certificate.

use std::net::IpAddr;

use crate::encryption::ClientEncryption;
use crate::reader::Reader;

/// The operator's port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdminPort {
    /// admin_address; None: where clients connect if that is a loopback address, else 127.0.0.1.
    pub address: Option<IpAddr>,
    /// admin_encryption_options, with the sub-keys of client_encryption_options; None: the port is
    /// not encrypted.
    pub encryption: Option<ClientEncryption>,
}

/// Reads the keys. `authenticates`: roles log in.
pub(crate) fn admin_port(reader: &mut Reader<'_>, authenticates: bool) -> AdminPort {
    let (address, encryption) = (reader.address("admin_address"), reader.encryption("admin_encryption_options"));
    if address.is_some_and(|address| !address.is_loopback()) {
        match &encryption {
            None => reader.problem(
                "admin_address",
                "an address that other machines reach needs admin_encryption_options, with the sub-keys of \
                 client_encryption_options",
            ),
            Some(encryption) if encryption.optional => {
                reader.problem("admin_encryption_options", "optional is for a loopback admin_address alone");
            }
            Some(encryption) if !authenticates && !encryption.require_client_auth => reader.problem(
                "admin_address",
                "an address that other machines reach needs authenticator: PasswordAuthenticator, or \
                 require_client_auth in admin_encryption_options",
            ),
            Some(_) => {}
        }
        if reader.boolean("management_api_without_token_enabled") {
            let why = "is for programs of the machine alone, so admin_address must be a loopback one";
            reader.problem("management_api_without_token_enabled", why);
        }
    }
    AdminPort { address, encryption }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn off_the_loopback_the_port_needs_encryption_and_logins() {
        let load = |lines: &str| Config::load(Some(lines), &[], false);
        let none = load("").expect("the defaults").admin_port;
        assert_eq!((none.address, none.encryption), (None, None));
        let pem = "ssl_context_factory: {class_name: PEMBasedSslContextFactory}, keystore: k.pem, truststore: t.pem";
        let tls = |more: &str| format!("admin_encryption_options: {{enabled: true, {pem}{more}}}\n");
        let (here, there) = ("admin_address: 127.0.0.2\n", "admin_address: 10.0.0.1\n");
        let passwords = "authenticator: PasswordAuthenticator\n";
        for good in [
            here.to_owned(),
            format!("{here}{}", tls(", optional: true")),
            format!("{there}{passwords}{}", tls("")),
            format!("{there}{}", tls(", require_client_auth: true")),
        ] {
            let port = load(&good).expect("honoured").admin_port;
            assert!(port.address.is_some(), "{good}");
        }
        for (bad, why) in [
            (there.to_owned(), "admin_address: an address that other machines reach needs admin_encryption_options"),
            (format!("{there}{}", tls("")), "needs authenticator: PasswordAuthenticator"),
            (format!("{there}{passwords}{}", tls(", optional: true")), "optional is for a loopback"),
            (
                format!("{there}{passwords}management_api_without_token_enabled: true\n{}", tls("")),
                "management_api_without_token_enabled: is for programs of the machine alone",
            ),
            (format!("{here}{}", tls(", colour: red")), "admin_encryption_options: colour is no sub-key"),
        ] {
            let error = load(&bad).expect_err("refused").to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }
}
