//! Functions of time: `now`, conversions and `floor`.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.TimeFcts` and the floor functions of
//! `cql3.Duration`.

use types::number::{millis_of, of_millis};
use types::{CqlType, Duration, timeuuid};

use super::registry::FunctionRegistry;
use super::{Body, Function, Monotonic, Outcome};
use crate::error::CqlError;
use crate::sources::Sources;

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;

/// Declares them.
pub(super) fn declare(registry: &mut FunctionRegistry) {
    use CqlType::{BigInt, Date, Time, TimeUuid, Timestamp};
    let now: fn(&dyn Sources, &mut Vec<u8>) = |sources, out| out.extend_from_slice(&sources.timeuuid());
    registry.add(Function::new("now", &[], TimeUuid, Body::Source(now)));
    registry.add_with_old_name(Function::new("current_timeuuid", &[], TimeUuid, Body::Source(now)), "currenttimeuuid");
    let timestamp = Body::Source(|sources, out| out.extend_from_slice(&millis(sources).to_be_bytes()));
    registry.add_with_old_name(Function::new("current_timestamp", &[], Timestamp, timestamp), "currenttimestamp");
    let date = Body::Source(|sources, out| out.extend_from_slice(&of_millis(&Date, millis(sources))));
    registry.add_with_old_name(Function::new("current_date", &[], Date, date), "currentdate");
    let time = Body::Source(|sources, out| {
        out.extend_from_slice(&(millis(sources).rem_euclid(DAY) * 1_000_000).to_be_bytes());
    });
    registry.add_with_old_name(Function::new("current_time", &[], Time, time), "currenttime");

    let min = Body::Strict(|function, arguments, out| uuid(timeuuid::min_of_millis, function, arguments, out));
    registry.add_with_old_name(Function::new("min_timeuuid", &[Timestamp], TimeUuid, min), "mintimeuuid");
    let max = Body::Strict(|function, arguments, out| uuid(timeuuid::max_of_millis, function, arguments, out));
    registry.add_with_old_name(Function::new("max_timeuuid", &[Timestamp], TimeUuid, max), "maxtimeuuid");

    let conversions = [
        ("to_date", "todate", TimeUuid, Date),
        ("to_date", "todate", Timestamp, Date),
        ("to_timestamp", "totimestamp", TimeUuid, Timestamp),
        ("to_timestamp", "totimestamp", Date, Timestamp),
        ("to_unix_timestamp", "tounixtimestamp", TimeUuid, BigInt),
        ("to_unix_timestamp", "tounixtimestamp", Timestamp, BigInt),
        ("to_unix_timestamp", "tounixtimestamp", Date, BigInt),
    ];
    for (name, old, from, to) in conversions {
        let function = Function::new(name, &[from], to, Body::Strict(convert)).monotonic(Monotonic::Yes);
        registry.add_with_old_name(function, old);
    }

    for (ty, returns) in [(Timestamp, Timestamp), (TimeUuid, Timestamp), (Date, Date)] {
        let mut arguments = vec![ty, CqlType::Duration];
        for _ in 0..2 {
            let function = Function::new("floor", &arguments, returns.clone(), Body::Strict(floor));
            registry.add(function.monotonic(Monotonic::InFirst));
            arguments.push(returns.clone());
        }
    }
    let time = Function::new("floor", &[Time, CqlType::Duration], Time, Body::Strict(floor_time));
    registry.add(time.monotonic(Monotonic::InFirst));
}

/// Milliseconds since 1970.
fn millis(sources: &dyn Sources) -> i64 {
    sources.micros().div_euclid(1000)
}

fn uuid(of: fn(i64) -> [u8; 16], function: &Function, arguments: &[&[u8]], out: &mut Vec<u8>) -> Outcome {
    let (Some(ty), [value]) = (function.arguments.first(), arguments) else { return Ok(false) };
    let Some(millis) = millis_of(ty, value) else { return Ok(false) };
    let uuid = of(millis);
    if !timeuuid::is_timeuuid(&uuid) {
        let bytes: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        return Err(CqlError::invalid(format!(
            "Return of function system.{} : (timestamp) -> timeuuid ({bytes}) is not a valid value for its declared return \
             type timeuuid",
            function.name
        )));
    }
    out.extend_from_slice(&uuid);
    Ok(true)
}

fn convert(function: &Function, arguments: &[&[u8]], out: &mut Vec<u8>) -> Outcome {
    let (Some(ty), [value]) = (function.arguments.first(), arguments) else { return Ok(false) };
    let Some(millis) = millis_of(ty, value) else { return Ok(false) };
    out.extend_from_slice(&of_millis(&function.returns, millis));
    Ok(true)
}

fn floor(function: &Function, arguments: &[&[u8]], out: &mut Vec<u8>) -> Outcome {
    let [ty, _, ..] = function.arguments.as_slice() else { return Ok(false) };
    let [value, duration, start @ ..] = arguments else { return Ok(false) };
    let start = match (start, function.arguments.get(2)) {
        ([start], Some(ty)) => millis_of(ty, start),
        _ => Some(0),
    };
    let (Some(millis), Some(duration), Some(start)) = (millis_of(ty, value), Duration::decode(duration), start) else {
        return Ok(false);
    };
    if function.returns == CqlType::Date && duration.nanoseconds != 0 {
        return Err(CqlError::invalid(format!(
            "The floor on date values cannot be computed for the {duration} duration as precision is below 1 day"
        )));
    }
    if duration.nanoseconds % 1_000_000 != 0 {
        return Err(CqlError::invalid(format!(
            "The floor cannot be computed for the {duration} duration as precision is below 1 millisecond"
        )));
    }
    out.extend_from_slice(&of_millis(&function.returns, duration.floor_timestamp(millis, start)?));
    Ok(true)
}

fn floor_time(_: &Function, arguments: &[&[u8]], out: &mut Vec<u8>) -> Outcome {
    let [value, duration] = arguments else { return Ok(false) };
    let (Ok(nanos), Some(duration)) = (<[u8; 8]>::try_from(*value), Duration::decode(duration)) else {
        return Ok(false);
    };
    out.extend_from_slice(&duration.floor_time(i64::from_be_bytes(nanos))?.to_be_bytes());
    Ok(true)
}
