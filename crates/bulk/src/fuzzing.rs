//! The decoder of answers, for `tests/fuzz`: a node's bytes as they come from the socket.

use crate::native::answer::{HEADER_SIZE, decode, frame_size};

/// Any bytes as frames of answers. Returns when they were read or refused.
pub fn answers(data: &[u8]) {
    let mut left = data;
    while let Ok(Some(size)) = frame_size(left) {
        assert!(size >= HEADER_SIZE, "a frame has a header");
        let Some(frame) = left.get(..size) else { return };
        let (header, body) = frame.split_at(HEADER_SIZE);
        if decode(header, body).is_err() {
            return;
        }
        left = &left[size..];
    }
}

/// Answers that are read to their end: an error, and rows of types within types.
pub fn seeds() -> Vec<Vec<u8>> {
    let frame = |opcode: u8, body: &[u8]| {
        let mut frame = vec![0x84, 0, 0, 0, opcode];
        stdx::put_u32(&mut frame, u32::try_from(body.len()).expect("a short body"));
        frame.extend_from_slice(body);
        frame
    };
    let mut error = Vec::new();
    stdx::put_i32(&mut error, 0x2200);
    stdx::put_short_bytes(&mut error, b"no such table");
    vec![frame(0x02, &[]), frame(0x00, &error), frame(0x08, &rows())]
}

/// The body of RESULT: two columns, a set and a map of a user type, of one row.
pub(crate) fn rows() -> Vec<u8> {
    let text = |out: &mut Vec<u8>, text: &str| stdx::put_short_bytes(out, text.as_bytes());
    let mut body = Vec::new();
    [2, 1, 2].into_iter().for_each(|number| stdx::put_i32(&mut body, number));
    ["ks", "t", "tokens"].into_iter().for_each(|name| text(&mut body, name));
    [0x22, 0x0d].into_iter().for_each(|number| stdx::put_u16(&mut body, number));
    text(&mut body, "m");
    [0x21, 0x0d, 0x30].into_iter().for_each(|number| stdx::put_u16(&mut body, number));
    ["ks", "u"].into_iter().for_each(|name| text(&mut body, name));
    stdx::put_u16(&mut body, 1);
    text(&mut body, "field");
    stdx::put_u16(&mut body, 0x09);
    stdx::put_i32(&mut body, 1);
    stdx::put_int_bytes(&mut body, Some(b"value"));
    stdx::put_int_bytes(&mut body, None);
    body
}
