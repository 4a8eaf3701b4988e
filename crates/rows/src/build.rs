//! Building something from the stream of a read: a page, an answer to another node, a condition's
//! rows.
//!
//! A read may be abandoned and run again from the beginning, on another thread or with more that
//! replicas have sent. So a build has no effects of its own: the same stream gives the same result.

use crate::error::ReadError;
use crate::stream::PartitionStream;

/// The error of a build.
pub trait BuildError: From<ReadError> + Send + 'static {
    /// Whether the error is [`ReadError::WouldBlock`], so that the build has to run again.
    fn is_blocked(&self) -> bool;

    /// The failure of the read that the error tells of; None: the build itself has failed.
    fn read_error(&self) -> Option<&ReadError>;
}

impl BuildError for ReadError {
    fn is_blocked(&self) -> bool {
        *self == Self::WouldBlock
    }

    fn read_error(&self) -> Option<&ReadError> {
        Some(self)
    }
}

/// The outcome of a build.
pub type BuildResult<B> = Result<<B as Build>::Built, <B as Build>::Error>;

/// A function of the stream of a read. Every closure with such a signature is one.
pub trait Build: Send + Sync + 'static {
    /// The result.
    type Built: Send + 'static;
    /// The error.
    type Error: BuildError;

    /// Builds the result from the beginning of the stream.
    fn build(&self, stream: &mut dyn PartitionStream) -> Result<Self::Built, Self::Error>;
}

impl<T, E, F> Build for F
where
    T: Send + 'static,
    E: BuildError,
    F: Fn(&mut dyn PartitionStream) -> Result<T, E> + Send + Sync + 'static,
{
    type Built = T;
    type Error = E;

    fn build(&self, stream: &mut dyn PartitionStream) -> Result<T, E> {
        self(stream)
    }
}
