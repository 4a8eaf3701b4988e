//! Two thresholds for a number: beyond the first the client is warned, beyond the second the
//! request is refused.
//!
//! Must agree with: `MaxThreshold` and `MinThreshold`.

use super::violation_text;
use crate::error::CqlError;

/// The two thresholds; None: no warning, no refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Threshold {
    /// The threshold of the warning.
    pub warn: Option<i64>,
    /// The threshold of the refusal.
    pub fail: Option<i64>,
}

/// Makes the message, from whether it is a warning and the threshold.
pub(super) type Message<'m> = &'m dyn Fn(bool, i64) -> String;

/// The name of a guardrail, and the reason that messages give for it.
#[derive(Clone, Copy)]
pub(super) struct Guard {
    pub name: &'static str,
    pub reason: &'static str,
}

impl Guard {
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, reason: "" }
    }
}

impl Threshold {
    /// Neither threshold is set.
    pub fn is_off(&self) -> bool {
        self.warn.is_none() && self.fail.is_none()
    }

    /// Checks a number that may not be greater than the thresholds.
    pub(super) fn at_most(
        &self,
        guard: Guard,
        value: i64,
        message: Message<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        self.check(guard, |threshold| value > threshold, message, warnings)
    }

    /// Checks a number that may not be less than the thresholds.
    pub(super) fn at_least(
        &self,
        guard: Guard,
        value: i64,
        message: Message<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        self.check(guard, |threshold| value < threshold, message, warnings)
    }

    fn check(
        &self,
        guard: Guard,
        violates: impl Fn(i64) -> bool,
        message: Message<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        if let Some(threshold) = self.fail.filter(|threshold| violates(*threshold)) {
            return Err(CqlError::Invalid(violation_text(guard.name, &message(false, threshold), guard.reason)));
        }
        if let Some(threshold) = self.warn.filter(|threshold| violates(*threshold)) {
            let warning = violation_text(guard.name, &message(true, threshold), guard.reason);
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        Ok(())
    }
}

/// The word for the threshold in messages.
pub(super) fn level(is_warning: bool) -> &'static str {
    if is_warning { "warning" } else { "failure" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_nothing_between_a_warning_above_a_refusal() {
        let threshold = Threshold { warn: Some(2), fail: Some(4) };
        let check = |value: i64| {
            let mut warnings = Vec::new();
            let message =
                |is_warning: bool, at: i64| format!("{value} is over the {} threshold of {at}", level(is_warning));
            let refusal = threshold.at_most(Guard::new("size"), value, &message, &mut warnings);
            refusal.map_or_else(|error| error.to_string(), |()| warnings.concat())
        };
        assert_eq!(check(2), "");
        assert_eq!(check(4), "Guardrail size violated: 4 is over the warning threshold of 2");
        assert_eq!(check(5), "Guardrail size violated: 5 is over the failure threshold of 4");
        let mut warnings = Vec::new();
        let guard = Guard { name: "low", reason: "Because." };
        let low = Threshold { warn: None, fail: Some(4) };
        let refusal = low.at_least(guard, 3, &|_, _| "too few".to_owned(), &mut warnings).unwrap_err();
        assert_eq!(refusal.to_string(), "Guardrail low violated: too few. Because.");
        assert_eq!(Threshold::default().at_most(guard, i64::MAX, &|_, _| String::new(), &mut warnings), Ok(()));
    }
}
