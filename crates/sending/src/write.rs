//! Writes bytes into a link, with a limit to the time in which the peer takes none.

use std::io;
use std::time::Duration;

use env::Env;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Writes all bytes. A peer that takes no bytes for `limit` is given up; zero: never.
pub async fn write_within(
    env: &Env,
    limit: Duration,
    link: &mut (impl AsyncWrite + Unpin + ?Sized),
    bytes: &[u8],
) -> io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        let taking = link.write(left);
        let count = match limit.is_zero() {
            true => taking.await?,
            false => env.timeout(limit, taking).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??,
        };
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        left = &left[count..];
    }
    link.flush().await
}
