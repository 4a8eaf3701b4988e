//! CQL 3.4.7: lexer, parser, planning and execution of statements.

#![forbid(unsafe_code)]

pub mod ast;
