//! Timeouts, tracing and levels of the log: what an operator changes until the next start.

use std::time::Duration;

use admin::verbs::guardrails::is_guardrail;
use admin::verbs::{
    GetGuardrails, GetLoggingLevels, GetTimeout, GetTraceProbability, ReloadCertificates, SetGuardrails,
    SetLoggingLevel, SetTimeout, SetTraceProbability, TimeoutKind,
};
use admin::{AdminError, Functions, Result};
use cluster::Timeouts;

use super::{NodeAdmin, failed, invalid};

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(trace_probability).add(set_trace_probability);
    functions.add(timeout).add(set_timeout);
    functions.add(guardrails).add(set_guardrails);
    functions.add(logging_levels).add(set_logging_level);
    functions.add(reload_certificates);
}

fn trace_probability(admin: &NodeAdmin, _: &GetTraceProbability) -> Result<f64> {
    Ok(admin.services.trace_probability())
}

fn set_trace_probability(admin: &NodeAdmin, request: &SetTraceProbability) -> Result<()> {
    if !(0.0..=1.0).contains(&request.probability) {
        return invalid("Trace probability must be between 0 and 1");
    }
    admin.services.set_trace_probability(request.probability);
    Ok(())
}

fn reload_certificates(admin: &NodeAdmin, _: &ReloadCertificates) -> Result<()> {
    let problems = admin.services.certificates.reload(&admin.cluster().env, true);
    if problems.is_empty() { Ok(()) } else { Err(failed(problems.join("\n"))) }
}

fn timeout(admin: &NodeAdmin, request: &GetTimeout) -> Result<u64> {
    let timeout = *of_kind(&mut admin.cluster().timeouts(), request.kind);
    Ok(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
}

fn set_timeout(admin: &NodeAdmin, request: &SetTimeout) -> Result<()> {
    let mut timeouts = admin.cluster().timeouts();
    *of_kind(&mut timeouts, request.kind) = Duration::from_millis(request.millis);
    admin.cluster().set_timeouts(timeouts);
    Ok(())
}

fn guardrails(admin: &NodeAdmin, _: &GetGuardrails) -> Result<Vec<(String, Option<String>)>> {
    let mut settings = admin.services.guardrails.settings();
    settings.retain(|(key, _)| is_guardrail(key));
    Ok(settings)
}

fn set_guardrails(admin: &NodeAdmin, request: &SetGuardrails) -> Result<()> {
    if let Some((other, _)) = request.settings.iter().find(|(key, _)| !is_guardrail(key)) {
        return invalid(format!("Guardrail {other} not found."));
    }
    admin.services.guardrails.change(&request.settings, admin.cluster()).map_err(AdminError::Invalid)
}

fn of_kind(timeouts: &mut Timeouts, kind: TimeoutKind) -> &mut Duration {
    match kind {
        TimeoutKind::Read => &mut timeouts.read,
        TimeoutKind::Range => &mut timeouts.range,
        TimeoutKind::Write => &mut timeouts.write,
        TimeoutKind::CounterWrite => &mut timeouts.counter_write,
        TimeoutKind::CasContention => &mut timeouts.cas_contention,
        TimeoutKind::Truncate => &mut timeouts.truncate,
        TimeoutKind::Misc => &mut timeouts.misc,
    }
}

fn logging_levels(admin: &NodeAdmin, _: &GetLoggingLevels) -> Result<Vec<(String, String)>> {
    Ok(admin.services.logging_levels())
}

fn set_logging_level(admin: &NodeAdmin, request: &SetLoggingLevel) -> Result<()> {
    let SetLoggingLevel { logger, level } = request;
    // the logger of all others by each of its names
    let logger = match logger.as_str() {
        "root" | "org.apache.cassandra" => "ROOT",
        other => other,
    };
    let set = admin.set_level.as_ref().ok_or_else(|| failed("the log's levels are fixed"))?;
    set(logger, level).map_err(AdminError::Invalid)?;
    admin.services.note_logging_level(logger, level);
    Ok(())
}
