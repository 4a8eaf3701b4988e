//! The native protocol v3, v4, v5: frames, segments, requests, responses.
