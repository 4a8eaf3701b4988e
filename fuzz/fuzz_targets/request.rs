//! Frames: a header, then a request's body.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(Some(header)) = protocol::frame::decode_header(data) else { return };
    let body = bytes::Bytes::copy_from_slice(data.get(9..).unwrap_or_default());
    let _ = protocol::request::RequestEnvelope::decode(&header, &body);
});
