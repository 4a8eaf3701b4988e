//! CQL types: encodings, orders, text forms, byte-comparable forms, tokens.
