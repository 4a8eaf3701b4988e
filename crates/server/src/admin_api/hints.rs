//! Hinted handoff: its settings, and the hints that wait.

use std::time::Duration;

use admin::verbs::{GetHandoff, GetPendingHints, HandoffChange, HandoffInfo, PendingHintsInfo};
use admin::{Functions, Result};
use cluster::clock::uuid_text;
use cluster::hints::HostHints;

use super::{NodeAdmin, invalid};

/// Data center, rack and state of a host that is not in the ring.
const UNKNOWN: &str = "Unknown";

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(handoff).add(change_handoff).add(pending_hints);
}

fn handoff(admin: &NodeAdmin, _: &GetHandoff) -> Result<HandoffInfo> {
    let settings = admin.cluster().handoff_settings();
    Ok(HandoffInfo {
        is_enabled: settings.is_enabled,
        is_paused: admin.cluster().is_handoff_paused(),
        disabled_data_centers: settings.disabled_data_centers.iter().cloned().collect(),
        window_millis: u64::try_from(settings.window.as_millis()).unwrap_or(u64::MAX),
        throttle: settings.throttle,
    })
}

fn change_handoff(admin: &NodeAdmin, change: &HandoffChange) -> Result<()> {
    let node = admin.cluster();
    match change {
        HandoffChange::Enable(is_enabled) => node.change_handoff_settings(|settings| settings.is_enabled = *is_enabled),
        HandoffChange::EnableFor(name, true) => node.change_handoff_settings(|settings| {
            settings.disabled_data_centers.remove(name);
        }),
        HandoffChange::EnableFor(name, false) => node.change_handoff_settings(|settings| {
            settings.disabled_data_centers.insert(name.clone());
        }),
        HandoffChange::Send(true) => node.resume_handoff(),
        HandoffChange::Send(false) => node.pause_handoff(),
        HandoffChange::Window(millis) => {
            node.change_handoff_settings(|settings| settings.window = Duration::from_millis(*millis));
        }
        HandoffChange::ThrottleKib(kib) => {
            node.change_handoff_settings(|settings| settings.throttle = kib.saturating_mul(1 << 10));
        }
        HandoffChange::Truncate(None) => node.truncate_hints(),
        HandoffChange::Truncate(Some(address)) => return truncate_of(admin, address),
    }
    Ok(())
}

fn truncate_of(admin: &NodeAdmin, name: &str) -> Result<()> {
    let (host, port) = match name.parse::<std::net::SocketAddr>() {
        Ok(address) => (address.ip().to_string(), Some(address.port())),
        Err(_) => (name.to_owned(), None),
    };
    let Ok(addresses) = admin.cluster().env.network.resolve(&host) else {
        return invalid(format!("{name}: the name has no address"));
    };
    if addresses.into_iter().any(|address| admin.cluster().truncate_hints_of(address, port)) {
        return Ok(());
    }
    invalid(format!("Can't delete hints for unknown address {name}"))
}

fn pending_hints(admin: &NodeAdmin, _: &GetPendingHints) -> Result<Vec<PendingHintsInfo>> {
    Ok(admin.cluster().pending_hints().into_iter().map(info).collect())
}

fn info(hints: HostHints) -> PendingHintsInfo {
    let HostHints { pending, endpoint } = hints;
    let endpoint = endpoint.as_ref();
    let text = |of: Option<&String>| of.cloned().unwrap_or_else(|| UNKNOWN.to_owned());
    PendingHintsInfo {
        host_id: uuid_text(&pending.host_id),
        address: endpoint.map(|endpoint| endpoint.address.to_string()),
        rack: text(endpoint.map(|endpoint| &endpoint.rack)),
        data_center: text(endpoint.map(|endpoint| &endpoint.data_center)),
        status: endpoint.map_or(UNKNOWN, |endpoint| if endpoint.is_up { "UP" } else { "DOWN" }).to_owned(),
        files: pending.files,
        newest_millis: pending.newest_millis,
        oldest_millis: pending.oldest_millis,
    }
}
