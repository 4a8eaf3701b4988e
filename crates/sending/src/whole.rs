//! An SSTable that goes whole over a link that the kernel fills by itself: without encryption, on a
//! real machine. Elsewhere its files are read piece by piece ([`crate::Pieces`]); the peer sees the
//! same bytes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use env::{Env, FileSender, ReadFile};

use crate::outgoing::{OutgoingFile, PIECE_SIZE};

/// Sends the files of an SSTable. `pace` gets the number of bytes that are sent next, and gives
/// how long to wait before; `sent` gets the number that was sent. A peer that takes no bytes for
/// `limit` is given up; zero: never.
pub async fn send_components(
    env: &Env,
    limit: Duration,
    link: &dyn FileSender,
    file: &OutgoingFile,
    mut pace: impl FnMut(usize) -> Duration,
    mut sent: impl FnMut(u64),
) -> io::Result<()> {
    for (_, component) in file.entire.iter().flatten() {
        send_component(env, limit, link, component, &mut pace, &mut sent).await?;
    }
    Ok(())
}

async fn send_component(
    env: &Env,
    limit: Duration,
    link: &dyn FileSender,
    component: &Arc<dyn ReadFile>,
    pace: &mut impl FnMut(usize) -> Duration,
    sent: &mut impl FnMut(u64),
) -> io::Result<()> {
    let mut offset = 0;
    while offset < component.len() {
        let length = (component.len() - offset).min(PIECE_SIZE as u64);
        let wait = pace(length as usize);
        if !wait.is_zero() {
            env.sleep(wait).await;
        }
        let end = offset + length;
        while offset < end {
            let sending = link.send(env, component, offset, end - offset);
            offset += match limit.is_zero() {
                true => sending.await?,
                false => env.timeout(limit, sending).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??,
            };
        }
        sent(length);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;

    use env::SendingFile;
    use env::sim::{DATA, Sim};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(7);

    /// A connection that takes at most so many bytes at once, and none after the first `taken_max`.
    struct Taking {
        at_once: u64,
        taken_max: usize,
        taken: RefCell<Vec<u8>>,
    }

    impl FileSender for Taking {
        fn send<'a>(&'a self, _: &'a Env, file: &'a Arc<dyn ReadFile>, offset: u64, length: u64) -> SendingFile<'a> {
            Box::pin(async move {
                if self.taken.borrow().len() >= self.taken_max {
                    std::future::pending::<()>().await;
                }
                let count = length.min(self.at_once);
                let mut bytes = vec![0; count as usize];
                file.read_at(&mut bytes, offset)?;
                self.taken.borrow_mut().extend(bytes);
                Ok(count)
            })
        }
    }

    /// Sends a file of two pieces and 77 bytes: what came of it, the pieces that were paced and
    /// told, the bytes that were taken, and those of the file.
    fn send(taken_max: usize) -> (io::Result<()>, [Vec<u64>; 2], Vec<u8>, Vec<u8>) {
        let sim = Sim::new(1);
        let env = sim.env();
        let bytes: Vec<u8> = (0..2 * PIECE_SIZE + 77).map(|place| (place / 7 + place / 4096) as u8).collect();
        let path = Path::new(DATA).join("component");
        env.disk.create_dir_all(Path::new(DATA)).expect("a sound disk");
        env.disk.create(&path).and_then(|mut file| file.write_all(&bytes)).expect("a sound disk");
        let file = env.disk.open_read(&path).expect("a sound disk");
        let (paced, told) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
        let link = Taking { at_once: 300_000, taken_max, taken: RefCell::default() };
        let mut pace = |length| {
            paced.borrow_mut().push(length as u64);
            Duration::from_secs(1)
        };
        let mut sent = |length| told.borrow_mut().push(length);
        let begin = env.now();
        let done = sim.block_on(send_component(&env, LIMIT, &link, &file, &mut pace, &mut sent));
        let waited = Duration::from_secs(paced.borrow().len() as u64);
        let stuck = if done.is_err() { LIMIT } else { Duration::ZERO };
        assert_eq!(env.elapsed(begin), waited + stuck);
        (done, [paced.into_inner(), told.into_inner()], link.taken.into_inner(), bytes)
    }

    #[test]
    fn a_file_goes_in_paced_pieces() {
        let (done, pieces, taken, bytes) = send(usize::MAX);
        done.expect("all is taken");
        let all = [PIECE_SIZE as u64, PIECE_SIZE as u64, 77];
        assert_eq!(pieces, [all.to_vec(), all.to_vec()]);
        assert!(taken == bytes, "{} bytes", taken.len());
    }

    #[test]
    fn a_peer_that_takes_no_bytes_is_given_up() {
        let (done, [paced, told], taken, bytes) = send(PIECE_SIZE + 300_000);
        assert_eq!(done.expect_err("it stops").kind(), io::ErrorKind::TimedOut);
        assert_eq!((paced.len(), told), (2, vec![PIECE_SIZE as u64]));
        assert!(taken == bytes[..PIECE_SIZE + 300_000], "{} bytes", taken.len());
    }
}
