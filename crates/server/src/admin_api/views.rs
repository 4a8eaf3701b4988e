//! Materialized views: how far their builds are.

use admin::verbs::{GetViewBuild, ViewBuildInfo};
use admin::{Functions, Result};
use cluster::operations::views;

use super::{NodeAdmin, wait};

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(build);
}

fn build(admin: &NodeAdmin, request: &GetViewBuild) -> Result<Vec<ViewBuildInfo>> {
    let told = wait(views::build_statuses(admin.cluster(), &request.keyspace, &request.view))?;
    let host = |address: std::net::SocketAddr| match request.with_port {
        true => address.to_string(),
        false => address.ip().to_string(),
    };
    Ok(told.into_iter().map(|(address, status)| ViewBuildInfo { host: host(address), status }).collect())
}
