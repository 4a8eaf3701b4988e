//! Lists of words that are warned of, ignored or refused: properties of tables, consistency levels.
//!
//! Must agree with: `org.apache.cassandra.db.guardrails.Values`.

use super::violation_text;
use crate::error::CqlError;

/// The three lists.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Values {
    /// Words that the client is warned of.
    pub warned: Vec<String>,
    /// Words that are ignored, with a warning.
    pub ignored: Vec<String>,
    /// Words that are refused.
    pub disallowed: Vec<String>,
}

impl Values {
    /// Checks the words of a statement. `what` names their kind in messages.
    pub(super) fn check(
        &self,
        guard: &str,
        what: &str,
        given: &[&str],
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        let text = |list: &[String], how: &str| {
            let found: Vec<&str> =
                given.iter().copied().filter(|word| list.iter().any(|known| known == word)).collect();
            let (found_text, list_text) = (found.join(", "), list.join(", "));
            (!found.is_empty()).then(|| {
                let message = match how {
                    "disallowed" => {
                        format!("Provided values [{found_text}] are not allowed for {what} (disallowed values are: [{list_text}])")
                    }
                    "ignored" => format!(
                        "Ignoring provided values [{found_text}] as they are not supported for {what} (ignored values are: \
                         [{list_text}])"
                    ),
                    _ => format!(
                        "Provided values [{found_text}] are not recommended for {what} (warned values are: [{list_text}])"
                    ),
                };
                violation_text(guard, &message, "")
            })
        };
        if let Some(refusal) = text(&self.disallowed, "disallowed") {
            return Err(CqlError::Invalid(refusal));
        }
        warnings.extend(text(&self.ignored, "ignored"));
        warnings.extend(text(&self.warned, "warned"));
        Ok(())
    }
}
