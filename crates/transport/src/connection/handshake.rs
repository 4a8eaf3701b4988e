//! The requests that the connection answers itself: OPTIONS, STARTUP, AUTH_RESPONSE, REGISTER.
//!
//! ```text
//! established --STARTUP--> ready                      if nobody has to authenticate
//! established --STARTUP--> authenticating --AUTH_RESPONSE--> ready
//! ```
//! In version 5 segments begin after READY or AUTHENTICATE in both directions.
//! Agrees with `ServerConnection`, `StartupMessage`, `AuthResponse`, `RegisterMessage`, `OptionsMessage`.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use env::Instant;
use protocol::request::{AuthResponse, Register, Startup};
use protocol::segment::SegmentFormat;
use protocol::{Compression, ErrorMessage, ProtocolVersion, Request, RequestEnvelope, Response, ResponseEnvelope};

use super::{Closing, Connection};
use crate::handler::{ConnectionInfo, Handled, RequestHandler};
use crate::limits::FAILED_LOGINS_MAX;
use crate::stats::Stage;

impl<H, M, F> Connection<H, M, F>
where
    H: RequestHandler,
    M: Fn(Rc<H::Client>, RequestEnvelope, Instant) -> F,
    F: Future<Output = Handled<H::Last>>,
{
    /// Answers a request that is not the handler's, or comes at the wrong time.
    pub(super) fn handshake(&mut self, envelope: RequestEnvelope) {
        let RequestEnvelope { version, stream, request, .. } = envelope;
        let opcode = request.opcode();
        match (self.stage(), request) {
            (Stage::Established | Stage::Ready, Request::Options) => {
                let supported = Response::Supported(self.origin.core.shared.supported.clone());
                self.answer(stream, version, supported);
            }
            (Stage::Established, Request::Startup(startup)) => self.start(stream, version, &startup),
            (Stage::Authenticating, Request::AuthResponse(response)) => self.authenticate(stream, response),
            (Stage::Ready, Request::Register(register)) => self.register(stream, version, &register),
            (Stage::Established, _) => {
                self.refuse_message(
                    stream,
                    version,
                    format!("Unexpected message {opcode}, expecting STARTUP or OPTIONS"),
                );
            }
            (Stage::Authenticating, _) => {
                self.refuse_message(stream, version, format!("Unexpected message {opcode}, expecting SASL_RESPONSE"));
            }
            (Stage::Ready, Request::Startup(_)) => {
                let text = "Unexpected message STARTUP, the connection is already initialized".to_owned();
                self.refuse_message(stream, version, text);
            }
            (Stage::Ready, _) => self.refuse_message(stream, version, format!("Unexpected message {opcode}")),
        }
    }

    fn answer(&mut self, stream: i16, version: ProtocolVersion, response: impl Into<Response>) {
        self.output.push(&ResponseEnvelope::new(stream, response), version);
    }

    fn refuse_message(&mut self, stream: i16, version: ProtocolVersion, text: String) {
        self.origin.core.stats.protocol_errors.add(1);
        self.answer(stream, version, ErrorMessage::protocol(text));
    }

    fn start(&mut self, stream: i16, version: ProtocolVersion, startup: &Startup) {
        let compression = match check_startup(startup, version) {
            Ok(compression) => compression,
            Err(text) => return self.refuse_message(stream, version, text),
        };
        self.throw_on_overload = startup.option("THROW_ON_OVERLOAD") == Some("1");
        self.note_startup(version, startup);
        self.version = Some(version);
        match self.origin.core.shared.authenticator.class_name().map(str::to_owned) {
            Some(class) => {
                self.origin.stats.set_stage(Stage::Authenticating);
                self.answer(stream, version, Response::Authenticate(class));
            }
            None => {
                self.become_ready(None);
                self.answer(stream, version, Response::Ready);
            }
        }
        // only now: the answer itself is still bare and uncompressed
        if version.has_segments() {
            let format = if compression.is_some() { SegmentFormat::Lz4 } else { SegmentFormat::Plain };
            self.input.start_segments(format);
            self.output.start_segments(format);
        } else if let Some(compression) = compression {
            self.output.start_compression(compression);
        }
    }

    fn note_startup(&self, version: ProtocolVersion, startup: &Startup) {
        self.origin.stats.update(|details| {
            details.version = Some(version);
            details.options = startup.options.iter().map(|(key, value)| (key.clone(), value.to_string())).collect();
            details.driver_name = startup.option("DRIVER_NAME").map(Arc::from);
            details.driver_version = startup.option("DRIVER_VERSION").map(Arc::from);
        });
    }

    fn become_ready(&mut self, user: Option<Arc<str>>) {
        let version = self.version.expect("STARTUP sets it");
        self.origin.stats.set_stage(Stage::Ready);
        self.origin.control.ready.set(true);
        self.origin.stats.update(|details| details.user = user.clone());
        self.input.allow(super::sizes(&self.origin.core.shared.limits));
        let stats = self.origin.stats.clone();
        self.client = Some(self.handler.connect(ConnectionInfo { peer: self.origin.peer, version, user, stats }));
    }

    /// Begins to judge the token; nothing else is executed until that is done.
    fn authenticate(&mut self, stream: i16, response: AuthResponse) {
        self.auth = Some((stream, self.origin.core.shared.authenticator.authenticate(response)));
    }

    pub(super) fn collect_auth(&mut self, context: &mut Context<'_>) {
        let Some((stream, future)) = &mut self.auth else {
            return;
        };
        let Poll::Ready(outcome) = future.as_mut().poll(context) else {
            return;
        };
        let stream = *stream;
        self.auth = None;
        match outcome {
            Ok(user) => {
                self.become_ready(Some(user));
                self.push(&ResponseEnvelope::new(stream, Response::AuthSuccess(None)));
            }
            Err(error) => {
                self.push(&ResponseEnvelope::new(stream, error));
                self.failed_logins += 1;
                if self.failed_logins >= FAILED_LOGINS_MAX {
                    tracing::warn!(peer = %self.origin.peer, "connection closed: too many logins failed");
                    self.closing = Closing::AfterFlush;
                }
            }
        }
    }

    fn register(&mut self, stream: i16, version: ProtocolVersion, register: &Register) {
        if self.closing == Closing::No {
            for event in &register.events {
                self.origin.control.register(*event);
            }
        }
        self.answer(stream, version, Response::Ready);
    }
}

/// The texts are Cassandra's.
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
