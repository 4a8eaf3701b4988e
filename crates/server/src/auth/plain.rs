//! SASL PLAIN: `[authorization id] 0 user 0 password`.
//!
//! Agrees with `PasswordAuthenticator.PlainTextSaslAuthenticator.decodeCredentials`, texts
//! included: it reads from the end.

/// User and password of a token, or why it has none. The authorization id is not looked at.
pub(super) fn credentials(token: &[u8]) -> Result<(String, String), &'static str> {
    let mut parts = token.rsplitn(4, |byte| *byte == 0);
    let last = parts.next().unwrap_or_default();
    let Some(user) = parts.next().map(|before| (before, parts.next())) else {
        return Err("Password must not be null");
    };
    if parts.next().is_some() {
        return Err("Credential format error: username or password is empty or contains NUL(\\0) character");
    }
    match user {
        _ if last.is_empty() => Err("Password must not be null"),
        (_, None) | ([], _) => Err("Authentication ID must not be null"),
        (user, Some(_)) => Ok((String::from_utf8_lossy(user).into_owned(), String::from_utf8_lossy(last).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        let good = Ok(("user".to_owned(), "word".to_owned()));
        assert_eq!(credentials(b"\0user\0word"), good);
        assert_eq!(credentials(b"somebody\0user\0word"), good);
        for (token, why) in [
            (&b""[..], "Password"),
            (b"word", "Password"),
            (b"\0user\0", "Password"),
            (b"\0\0", "Password"),
            (b"user\0word", "Authentication ID"),
            (b"\0\0word", "Authentication ID"),
            (b"\0a\0user\0word", "Credential format error"),
            (b"\0\0\0\0\0", "Credential format error"),
        ] {
            assert!(credentials(token).is_err_and(|text| text.starts_with(why)), "{token:?}");
        }
    }
}
