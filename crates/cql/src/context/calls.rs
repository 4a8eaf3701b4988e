//! Which functions the calls within a term were found to mean, remembered while the term is
//! prepared.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use types::CqlType;

use crate::ast;
use crate::error::CqlError;
use crate::functions::Function;

/// The function that a call means; None: there is none of its name.
pub(crate) type CallResolution = Result<Option<Arc<Function>>, CqlError>;

/// The meanings of the calls within one term: for each call the types that it was tried for.
/// Without this, `1 + 1 + … + 1` would be looked through again for every type of every operator. It
/// holds addresses of terms, so it is emptied when the outermost one is done.
#[derive(Default)]
pub(crate) struct CallCache {
    inner: RefCell<Known>,
}

#[derive(Default)]
struct Known {
    depth: usize,
    found: BTreeMap<usize, Vec<(Option<CqlType>, CallResolution)>>,
}

impl CallCache {
    pub fn enter(&self) {
        self.inner.borrow_mut().depth += 1;
    }

    pub fn leave(&self) {
        let mut known = self.inner.borrow_mut();
        known.depth -= 1;
        if known.depth == 0 {
            known.found.clear();
        }
    }

    pub fn get(&self, term: &ast::Term<'_>, receiver: Option<&CqlType>) -> Option<CallResolution> {
        let known = self.inner.borrow();
        let tried = known.found.get(&address(term))?;
        tried.iter().find(|(ty, _)| ty.as_ref() == receiver).map(|(_, found)| found.clone())
    }

    pub fn put(&self, term: &ast::Term<'_>, receiver: Option<&CqlType>, found: &CallResolution) {
        let mut known = self.inner.borrow_mut();
        known.found.entry(address(term)).or_default().push((receiver.cloned(), found.clone()));
    }
}

fn address(term: &ast::Term<'_>) -> usize {
    std::ptr::from_ref(term).addr()
}
