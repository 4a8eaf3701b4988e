//! Both sides of the handshake over a connection.

use std::io;

use bytes::BytesMut;
use env::Stream;
use internode::version::VersionRange;
use internode::{Accept, Initiate, InternodeError, LinkType, MessagingVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Most bytes of a message of the handshake.
const MESSAGE_SIZE_MAX: usize = 64;

const _: () = assert!(Accept::SIZE <= MESSAGE_SIZE_MAX, "the answer of a handshake is one that peers take");

/// The content type of a TLS record that holds a handshake; the major version 3 follows it.
const TLS_HANDSHAKE: u8 = 0x16;

pub(crate) fn bad(error: InternodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// A message at the start of some bytes, and its length; `None`: more bytes are needed.
type Decode<T> = fn(&[u8]) -> Result<Option<(T, usize)>, InternodeError>;

/// Reads until a message of the handshake is complete; bytes behind it stay in `input`.
async fn read<T>(stream: &mut dyn Stream, input: &mut BytesMut, decode: Decode<T>) -> io::Result<T> {
    loop {
        if let Some((message, size)) = decode(input).map_err(bad)? {
            let _ = input.split_to(size);
            return Ok(message);
        }
        if input.len() > MESSAGE_SIZE_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the handshake does not end"));
        }
        if stream.read_buf(input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Does the work of [`Initiate::decode`], with a clear error for a peer that begins with TLS.
fn decode_initiate(bytes: &[u8]) -> Result<Option<(Initiate, usize)>, InternodeError> {
    match bytes {
        [TLS_HANDSHAKE, 3, ..] => Err(InternodeError::Sequence(
            "the peer encrypts its link, and this node does not (server_encryption_options)",
        )),
        _ => Initiate::decode(bytes),
    }
}

/// The opener's side of a handshake. Gives the version of the following messages, and the peer's
/// highest version.
pub(crate) async fn open(stream: &mut dyn Stream, initiate: &Initiate) -> io::Result<(MessagingVersion, i32)> {
    let initial = initiate.encode();
    assert!(initial.len() <= MESSAGE_SIZE_MAX, "a handshake is one that peers take");
    stream.write_all(&initial).await?;
    stream.flush().await?;
    let accept = read(stream, &mut BytesMut::with_capacity(MESSAGE_SIZE_MAX), Accept::decode).await?;
    Ok((initiate.versions.accept(accept.version).map_err(bad)?, accept.max))
}

/// The acceptor's side of a handshake. Gives the peer's wishes and the version of the following
/// messages; bytes behind the handshake stay in `input`. `versions` are those that this node
/// speaks on a link of a type; `check` may refuse the peer before it is answered.
pub(crate) async fn accept(
    stream: &mut dyn Stream,
    input: &mut BytesMut,
    versions: impl FnOnce(LinkType) -> VersionRange,
    check: impl FnOnce(&Initiate) -> io::Result<()>,
) -> io::Result<(Initiate, MessagingVersion)> {
    let initiate = read(stream, input, decode_initiate).await?;
    check(&initiate)?;
    let versions = versions(initiate.link);
    let version = versions.choose(initiate.versions);
    let accept = Accept { max: i32::from(versions.max), version: i32::from(version) };
    // sent in any case: an opener that is refused reads what we speak
    stream.write_all(&accept.encode()).await?;
    stream.flush().await?;
    if !versions.meets(initiate.versions) {
        let VersionRange { min, max } = initiate.versions;
        let text = format!(
            "the peer speaks messaging versions {min} to {max}, this node {} to {}",
            versions.min, versions.max
        );
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    Ok((initiate, versions.accept(i32::from(version)).map_err(bad)?))
}
