//! Filters as text, for EXPLAIN.

use types::CqlType;

use super::filter::{Filter, FilterTest};
use super::in_values;
use crate::context::Bindings;
use crate::error::CqlError;
use crate::terms::Term;

/// The most values of an IN that are shown; of longer lists the number of values is shown.
const VALUES_SHOWN: usize = 3;

impl Filter {
    /// The condition with its values, as it could stand in a WHERE.
    pub fn text(&self, bindings: &Bindings<'_>) -> Result<String, CqlError> {
        let ty = self.column.ty();
        let literal = |ty: &CqlType, term: &Term| {
            let value = term.eval_option(bindings)?;
            Ok::<_, CqlError>(value.map_or("null".to_owned(), |value| types::to_text(ty, &value)))
        };
        let (key, element) = match ty {
            CqlType::Map { key, value, .. } => (&**key, &**value),
            CqlType::List { element, .. } | CqlType::Set { element, .. } => (&**element, &**element),
            other => (other, other),
        };
        let name = &self.name;
        Ok(match &self.test {
            FilterTest::Compare(operator, term) => format!("{name} {} {}", operator.symbol(), literal(ty, term)?),
            FilterTest::Contains(term) => format!("{name} CONTAINS {}", literal(element, term)?),
            FilterTest::ContainsKey(term) => format!("{name} CONTAINS KEY {}", literal(key, term)?),
            FilterTest::Entry(entry, term) => format!("{name}[{}] = {}", literal(key, entry)?, literal(element, term)?),
            FilterTest::Like(term) => format!("{name} LIKE {}", literal(ty, term)?),
            FilterTest::In(terms) | FilterTest::NotIn(terms) => {
                let operator = if matches!(self.test, FilterTest::In(_)) { "IN" } else { "NOT IN" };
                let values = in_values(terms, name, bindings)?;
                let shown: Vec<_> = values.iter().take(VALUES_SHOWN).map(|value| types::to_text(ty, value)).collect();
                let more =
                    if values.len() > VALUES_SHOWN { format!(", … {} values", values.len()) } else { String::new() };
                format!("{name} {operator} ({}{more})", shown.join(", "))
            }
        })
    }
}
