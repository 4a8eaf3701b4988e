//! `system_properties`: properties of the program. Cassandra shows the properties of its JVM and
//! the environment variables that it knows; a program without a JVM has few. Agrees with
//! `SystemPropertiesTable` where names are shared.

use cluster::identity::RELEASE_VERSION;
use cluster::operations::state;

use super::VirtualTable;
use super::row::VirtualRow;
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("system_properties", rows)];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let data = state::options(&services.node).data_directory().display().to_string();
    // the JVM's words
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        other => other,
    };
    let os = match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Mac OS X",
        other => other,
    };
    [
        ("cassandra.release_version", RELEASE_VERSION),
        ("helenus.version", env!("CARGO_PKG_VERSION")),
        ("helenus.data_directory", data.as_str()),
        ("line.separator", "\n"),
        ("os.arch", arch),
        ("os.name", os),
    ]
    .into_iter()
    .map(|(name, value)| VirtualRow::default().text("name", name).text("value", value))
    .collect()
}
