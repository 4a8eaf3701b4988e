//! The calls of user-defined functions that took long (`user_defined_functions_warn_timeout`), kept
//! until the request that made them tells its client.
//!
//! Functions are called deep in the evaluation of terms and rows, where no request is at hand, so
//! a call that took long is recorded on its thread. [`collect`] runs a piece of a request without
//! a wait, and gives the sentences that were recorded meanwhile; [`collect_async`] does so for a
//! request of several such pieces. Where nobody collects nothing is recorded.
//!
//! Bound: [`SLOW_CALLS_MAX`] sentences of a request; further ones are left out.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;

/// Most sentences about calls that took long that a client is told of one request.
pub(crate) const SLOW_CALLS_MAX: usize = 100;

thread_local! {
    /// The sentences about calls on this thread; None: nobody collects.
    static RECORDED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Records a call that took long.
pub(super) fn record(sentence: impl FnOnce() -> String) {
    record_all(|| vec![sentence()]);
}

/// Records the sentences that were recorded on another thread.
pub(crate) fn record_all(sentences: impl FnOnce() -> Vec<String>) {
    RECORDED.with_borrow_mut(|recorded| {
        if let Some(recorded) = recorded.as_mut().filter(|recorded| recorded.len() < SLOW_CALLS_MAX) {
            recorded.extend(sentences());
            recorded.truncate(SLOW_CALLS_MAX);
        }
    });
}

/// Whether somebody collects sentences on this thread.
pub(crate) fn is_collecting() -> bool {
    RECORDED.with_borrow(Option::is_some)
}

/// Runs a piece of work; gives its result, and the sentences that it recorded.
pub(crate) fn collect<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let outer = RECORDED.replace(Some(Vec::new()));
    let done = work();
    (done, RECORDED.replace(outer).unwrap_or_default())
}

/// Runs a request; gives its result, and the sentences that all of its pieces recorded.
pub(crate) async fn collect_async<F: Future>(request: F) -> (F::Output, Vec<String>) {
    let mut request = pin!(request);
    let mut sentences = Vec::new();
    let done = poll_fn(|context| {
        let (polled, recorded) = collect(|| request.as_mut().poll(context));
        let room = SLOW_CALLS_MAX - sentences.len();
        sentences.extend(recorded.into_iter().take(room));
        polled
    });
    (done.await, sentences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_go_to_the_innermost_who_collects() {
        record(|| "nobody watches".to_owned());
        let ((inner, of_inner), outer) = collect(|| {
            record(|| "a".to_owned());
            let inner = collect(|| record(|| "b".to_owned()));
            record(|| "c".to_owned());
            inner
        });
        assert_eq!((inner, of_inner, outer), ((), vec!["b".to_owned()], vec!["a".to_owned(), "c".to_owned()]));
    }

    #[test]
    fn a_request_tells_of_a_hundred_calls() {
        let noted = |count: usize| (0..count).for_each(|number| record(|| number.to_string()));
        assert_eq!(collect(|| noted(SLOW_CALLS_MAX + 1)).1.len(), SLOW_CALLS_MAX);
        let mut polls = 0;
        let request = poll_fn(|context| {
            noted(SLOW_CALLS_MAX / 2 + 1);
            polls += 1;
            context.waker().wake_by_ref();
            if polls < 3 { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
        });
        let mut watching = pin!(collect_async(request));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let sentences = loop {
            if let std::task::Poll::Ready(((), sentences)) = watching.as_mut().poll(&mut context) {
                break sentences;
            }
        };
        assert_eq!(sentences.len(), SLOW_CALLS_MAX);
    }
}
