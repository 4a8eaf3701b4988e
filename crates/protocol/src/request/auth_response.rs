//! AUTH_RESPONSE: the client's next token in the SASL exchange.

use bytes::Bytes;

use crate::decode_error::DecodeError;
use crate::wire::Reader;

/// An AUTH_RESPONSE.
#[derive(Clone, PartialEq)]
pub struct AuthResponse {
    /// The token for the authenticator; `None`: null on the wire.
    pub token: Option<Bytes>,
}

impl AuthResponse {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { token: reader.bytes("an authentication token")? })
    }

    /// User and password of SASL PLAIN: `[authorization id] 0 user 0 password`. None: the token has
    /// another form.
    pub fn plain(&self) -> Option<(&str, &str)> {
        let mut parts = self.token.as_deref()?.rsplitn(3, |byte| *byte == 0);
        let (password, user) = (parts.next()?, parts.next()?);
        parts.next()?;
        Some((std::str::from_utf8(user).ok()?, std::str::from_utf8(password).ok()?))
    }
}

/// The token is a secret, so it is not printed.
impl std::fmt::Debug for AuthResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuthResponse(..)")
    }
}
