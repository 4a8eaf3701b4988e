//! `coordinator_read_size_*_threshold`: the values of a page, and the tokens that warnings about
//! sizes of reads name.
//!
//! Agrees with `SelectStatement.{maybeWarn,maybeFail,loggableTokens}` and
//! `ReadCommand.loggableTokens`, down to the commas in the numbers.

use rows::PartitionRange;
use rows::command::RingBound;
use types::ident::qualified;
use types::{FailureReason, ReplicaFailure, Token};

use super::SelectPlan;
use super::page::Page;
use crate::context::Bindings;
use crate::coordinator::Coordinator;
use crate::error::{CqlError, operation_failed};
use crate::options::QueryOptions;

/// A page by the size of its values.
pub(super) enum PageSizeCheck {
    /// The page is given, with the warning about one that is large.
    Fits(Option<String>),
    /// The page is refused, with a warning that says the same as the error.
    TooLarge {
        /// The warning.
        warning: String,
        /// The error.
        error: CqlError,
    },
}

/// Refuses a page whose values are too large; gives the warning about one whose values are large.
/// `keys`: the tokens of the keys that the statement names. An error: the statement's bounds cannot
/// be read.
pub(super) fn check<C: Coordinator>(
    plan: &SelectPlan,
    page: &Page,
    keys: &[Token],
    bindings: &Bindings<'_>,
    options: &QueryOptions,
    coordinator: &C,
) -> Result<PageSizeCheck, CqlError> {
    let limits = &options.limits;
    let (kind, threshold) = match (limits.result_size_fail, limits.result_size_warn) {
        (Some(fail), _) if page.is_too_large => ("failure", fail),
        (_, Some(warn)) if page.size > warn => ("warning", warn),
        _ => return Ok(PageSizeCheck::Fits(None)),
    };
    let tokens = match keys {
        _ if !plan.restrictions.names_keys() => of_range(plan, bindings, ')')?,
        [token] => format!("token: {}", token.0),
        keys => {
            let tokens: Vec<_> = keys.iter().map(|token| token.0.to_string()).collect();
            format!("tokens: [{}]", tokens.join(", "))
        }
    };
    let message = format!(
        "Read on table {} has exceeded the size {kind} threshold of {} bytes with {tokens}",
        qualified(&plan.table.keyspace, &plan.table.name),
        grouped(threshold)
    );
    if !page.is_too_large {
        return Ok(PageSizeCheck::Fits(Some(message)));
    }
    let failures = vec![ReplicaFailure { endpoint: coordinator.endpoint(), reason: FailureReason::ReadSize }];
    let error = CqlError::ReadFailure {
        consistency: options.consistency,
        received: 0,
        block_for: 1,
        message: operation_failed(&message, &failures),
        failures,
        data_present: true,
    };
    Ok(PageSizeCheck::TooLarge { warning: message, error })
}

/// A number with a comma before each group of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The tokens of a read of the statement. `key`: the token of the partition that was read last.
pub(super) fn tokens_of_read(plan: &SelectPlan, key: Token, bindings: &Bindings<'_>) -> Result<String, CqlError> {
    match plan.restrictions.names_keys() {
        true => Ok(format!("token={}", key.0)),
        false => of_range(plan, bindings, if plan.ann_ordering.is_some() { ')' } else { ']' }),
    }
}

/// The tokens of a range. `whole`: how a range ends that is bound nowhere.
fn of_range(plan: &SelectPlan, bindings: &Bindings<'_>, whole: char) -> Result<String, CqlError> {
    let (start, end) = match plan.restrictions.range(&plan.table, bindings)? {
        Some(PartitionRange::Range { start, end }) => (start, end),
        _ => (RingBound::Open, RingBound::Open),
    };
    let of_bound = |bound: &RingBound| match bound {
        RingBound::Open => Token::MIN,
        RingBound::Token { token, .. } => *token,
        RingBound::Key { key, .. } => key.token,
    };
    let closes = if matches!((&start, &end), (RingBound::Open, RingBound::Open)) { whole } else { ']' };
    Ok(format!("token range: ({}, {}{closes}", of_bound(&start).0, of_bound(&end).0))
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_have_commas() {
        assert_eq!([0, 999, 1_000, 1_048_576].map(super::grouped), ["0", "999", "1,000", "1,048,576"]);
    }
}
