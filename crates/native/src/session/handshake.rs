//! The requests that the connection answers itself: OPTIONS, STARTUP, AUTH_RESPONSE, REGISTER.
//!
//! ```text
//! established --STARTUP--> ready                      if nobody has to log in
//! established --STARTUP--> authenticating --AUTH_RESPONSE--> ready
//! ```
//! In version 5 segments begin after READY or AUTHENTICATE in both directions. Agrees with
//! `ServerConnection`, `StartupMessage`, `AuthResponse`, `RegisterMessage`, `OptionsMessage`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use protocol::request::{AuthResponse, Register, Startup};
use protocol::segment::SegmentFormat;
use protocol::wire::Text;
use protocol::{Compression, ErrorMessage, ProtocolVersion, Request, RequestEnvelope, Response, ResponseEnvelope};
use transport::{Output, Received};

use super::{NativeSession, ReplyTarget};
use crate::authenticator::AuthOutcome;
use crate::details::Stage;
use crate::handler::{ConnectionInfo, RequestHandler};
use crate::limits::{FAILED_LOGINS_MAX, OPTIONS_MAX, OPTIONS_SIZE_MAX};

type AuthFuture = Pin<Box<dyn Future<Output = AuthOutcome>>>;

/// A login on its way.
#[derive(Default)]
pub(super) struct Login {
    /// The stream of AUTH_RESPONSE, and the judgement of its token; None: no token is being
    /// judged.
    begun: Option<(i16, AuthFuture)>,
    /// Number of logins that failed on this connection; at most [`FAILED_LOGINS_MAX`].
    failed: u32,
}

impl Login {
    /// Whether a token is being judged. Nothing else is executed until that is done.
    pub fn is_begun(&self) -> bool {
        self.begun.is_some()
    }
}

impl<H: RequestHandler, M> NativeSession<H, M> {
    /// Answers a request that is not the handler's, or comes at the wrong time.
    pub(super) fn handshake(&mut self, envelope: RequestEnvelope, out: &mut Output) -> Received<RequestEnvelope> {
        let RequestEnvelope { version, stream, request, .. } = envelope;
        let (to, opcode) = (ReplyTarget { stream, version }, request.opcode());
        let refused = match (self.opened.stats.stage(), request) {
            (Stage::Established | Stage::Ready, Request::Options) => {
                let supported = Response::Supported(self.shared.supported.clone());
                return self.reply(to, supported, out);
            }
            (Stage::Established, Request::Startup(startup)) => return self.start(to, &startup, out),
            (Stage::Authenticating, Request::AuthResponse(response)) => return self.authenticate(stream, response),
            (Stage::Ready, Request::Register(register)) => return self.register(to, &register, out),
            (Stage::Established, _) => format!("Unexpected message {opcode}, expecting STARTUP or OPTIONS"),
            (Stage::Authenticating, _) => format!("Unexpected message {opcode}, expecting SASL_RESPONSE"),
            (Stage::Ready, Request::Startup(_)) => {
                "Unexpected message STARTUP, the connection is already initialized".to_owned()
            }
            (Stage::Ready, _) => format!("Unexpected message {opcode}"),
        };
        self.refuse_message(to, refused, out)
    }

    fn reply(&mut self, to: ReplyTarget, response: impl Into<Response>, out: &mut Output) -> Received<RequestEnvelope> {
        self.push_as(&ResponseEnvelope::new(to.stream, response), to.version, out);
        Received::Answered
    }

    fn refuse_message(&mut self, to: ReplyTarget, text: String, out: &mut Output) -> Received<RequestEnvelope> {
        self.push_as(&ResponseEnvelope::new(to.stream, ErrorMessage::protocol(text)), to.version, out);
        Received::Refused
    }

    fn start(&mut self, to: ReplyTarget, startup: &Startup, out: &mut Output) -> Received<RequestEnvelope> {
        let version = to.version;
        let compression = match check_startup(startup, version) {
            Ok(compression) => compression,
            Err(text) => return self.refuse_message(to, text, out),
        };
        self.throw_on_overload = startup.option("THROW_ON_OVERLOAD") == Some("1");
        self.note_startup(version, startup);
        self.version = Some(version);
        match self.shared.authenticator.class_name().map(str::to_owned) {
            Some(class) => {
                self.opened.stats.set_stage(Stage::Authenticating);
                self.reply(to, Response::Authenticate(class), out);
            }
            None => {
                self.become_ready(None);
                self.reply(to, Response::Ready, out);
            }
        }
        // only now: the answer itself is still bare and uncompressed
        if version.has_segments() {
            let format = if compression.is_some() { SegmentFormat::Lz4 } else { SegmentFormat::Plain };
            self.framing.start_segments(format);
            out.start_segments(format);
        } else {
            self.compression = compression;
        }
        Received::Answered
    }

    /// Notes what STARTUP tells, for as long as the connection lives; no more options than drivers
    /// send.
    fn note_startup(&self, version: ProtocolVersion, startup: &Startup) {
        let short = |name: &str| startup.option(name).filter(|value| value.len() <= OPTIONS_SIZE_MAX).map(Arc::from);
        let mut size = 0;
        let fits = |(key, value): &&(String, Text)| {
            size += key.len() + value.len();
            size <= OPTIONS_SIZE_MAX
        };
        let kept = startup.options.iter().take(OPTIONS_MAX).take_while(fits);
        let options = kept.map(|(key, value)| (key.clone(), value.to_string())).collect();
        self.opened.stats.update(|details| {
            details.version = Some(version);
            details.options = options;
            details.driver_name = short("DRIVER_NAME");
            details.driver_version = short("DRIVER_VERSION");
        });
    }

    fn become_ready(&mut self, user: Option<Arc<str>>) {
        let version = self.version.expect("STARTUP sets it");
        self.opened.stats.set_stage(Stage::Ready);
        self.opened.link.set_ready();
        self.opened.stats.update(|details| details.user = user.clone());
        self.framing.allow(self.shared.sizes());
        let (peer, stats) = (self.opened.peer, self.opened.stats.clone());
        self.client = Some(self.handler.connect(ConnectionInfo { peer, version, user, stats }));
    }

    fn authenticate(&mut self, stream: i16, response: AuthResponse) -> Received<RequestEnvelope> {
        assert!(self.login.begun.is_none(), "one login of a connection is judged at a time");
        self.login.begun = Some((stream, self.shared.authenticator.authenticate(response)));
        Received::Answered
    }

    /// Goes on with a login. `false`: too many have failed.
    pub fn poll_login(&mut self, context: &mut Context<'_>, out: &mut Output) -> bool {
        let Some((stream, future)) = &mut self.login.begun else {
            return true;
        };
        let Poll::Ready(outcome) = future.as_mut().poll(context) else {
            return true;
        };
        let stream = *stream;
        self.login.begun = None;
        match outcome {
            Ok(user) => {
                self.become_ready(Some(user));
                self.push(&ResponseEnvelope::new(stream, Response::AuthSuccess(None)), out);
            }
            Err(error) => {
                self.push(&ResponseEnvelope::new(stream, error), out);
                self.login.failed += 1;
                if self.login.failed >= FAILED_LOGINS_MAX {
                    tracing::warn!(peer = %self.opened.peer, "connection closed: too many logins failed");
                    return false;
                }
            }
        }
        true
    }

    fn register(&mut self, to: ReplyTarget, register: &Register, out: &mut Output) -> Received<RequestEnvelope> {
        for event in &register.events {
            self.opened.link.ask_for(*event as u8);
        }
        self.reply(to, Response::Ready, out)
    }
}

/// The compression that STARTUP asks for, or why STARTUP is refused. The texts are Cassandra's.
fn check_startup(startup: &Startup, version: ProtocolVersion) -> Result<Option<Compression>, String> {
    startup.check_cql_version()?;
    let Some(name) = startup.option("COMPRESSION") else {
        return Ok(None);
    };
    match Compression::from_name(name) {
        Some(Compression::Snappy) if version.has_segments() => {
            Err("Snappy compression is not supported in protocol V5".to_owned())
        }
        Some(compression) => Ok(Some(compression)),
        None => Err(format!("Unknown compression algorithm: {}", name.to_lowercase())),
    }
}
