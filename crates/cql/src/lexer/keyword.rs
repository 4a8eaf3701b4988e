//! The keywords of the grammar, found by one look into a table computed at compile time.
//!
//! Must agree with: the `K_` tokens of Cassandra's `Lexer.g`, its `reserved_keywords.txt`, and the
//! rules `unreserved_keyword`, `unreserved_function_keyword`, `basic_unreserved_keyword`,
//! `native_type`. Three words are ours: `explain`, `analyze` and `between`; they may stand for any
//! name, so that no statement of Cassandra's means anything else.

use super::Kind;
use crate::ast::NativeType;

/// Where a keyword may stand for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Nowhere.
    Reserved,
    /// For a name of anything but a function or a type.
    Name,
    /// For a name, also of a function. These are the native types.
    Type(NativeType),
    /// For any name.
    Any,
}

macro_rules! keywords {
    ($($variant:ident $text:literal $use:expr;)*) => {
        /// A keyword.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Keyword { $($variant,)* }

        /// Every keyword with its text in lower case and its use.
        const KEYWORDS: &[(&str, Keyword, Use)] = &[$(($text, Keyword::$variant, $use),)*];

        impl Keyword {
            /// The keyword in lower case; of synonyms the one the grammar is written with.
            pub fn text(self) -> &'static str {
                KEYWORDS[self as usize].0
            }

            /// Where it may stand for a name.
            pub fn usage(self) -> Use {
                KEYWORDS[self as usize].2
            }
        }
    };
}

use NativeType as N;
use Use::{Any, Name, Reserved, Type};

keywords! {
    Access "access" Any;
    Add "add" Reserved;
    Aggregate "aggregate" Any;
    Aggregates "aggregates" Any;
    All "all" Any;
    Allow "allow" Reserved;
    Alter "alter" Reserved;
    And "and" Reserved;
    Analyze "analyze" Any;
    Ann "ann" Any;
    Apply "apply" Reserved;
    As "as" Any;
    Asc "asc" Reserved;
    Ascii "ascii" Type(N::Ascii);
    Authorize "authorize" Reserved;
    Batch "batch" Reserved;
    Begin "begin" Reserved;
    Between "between" Any;
    Bigint "bigint" Type(N::Bigint);
    Blob "blob" Type(N::Blob);
    Boolean "boolean" Type(N::Boolean);
    By "by" Reserved;
    Called "called" Any;
    Cast "cast" Name;
    Cidrs "cidrs" Any;
    Cluster "cluster" Any;
    Clustering "clustering" Any;
    Table "table" Reserved;
    Compact "compact" Any;
    Contains "contains" Any;
    Count "count" Name;
    Counter "counter" Type(N::Counter);
    Create "create" Reserved;
    Custom "custom" Any;
    Datacenters "datacenters" Any;
    Date "date" Type(N::Date);
    Decimal "decimal" Type(N::Decimal);
    Default "default" Any;
    Delete "delete" Reserved;
    Desc "desc" Reserved;
    Describe "describe" Reserved;
    Distinct "distinct" Name;
    Double "double" Type(N::Double);
    Drop "drop" Reserved;
    Duration "duration" Type(N::Duration);
    Entries "entries" Reserved;
    Execute "execute" Reserved;
    Exists "exists" Any;
    Explain "explain" Any;
    Filtering "filtering" Any;
    Finalfunc "finalfunc" Any;
    Float "float" Type(N::Float);
    From "from" Reserved;
    Frozen "frozen" Any;
    Full "full" Reserved;
    Function "function" Any;
    Functions "functions" Any;
    Grant "grant" Reserved;
    Group "group" Any;
    Hashed "hashed" Any;
    Identity "identity" Any;
    If "if" Reserved;
    In "in" Reserved;
    Index "index" Reserved;
    Inet "inet" Type(N::Inet);
    Infinity "infinity" Reserved;
    Initcond "initcond" Any;
    Input "input" Any;
    Insert "insert" Reserved;
    Int "int" Type(N::Int);
    Internals "internals" Any;
    Into "into" Reserved;
    Is "is" Reserved;
    Json "json" Name;
    Key "key" Name;
    Keys "keys" Any;
    Keyspace "keyspace" Reserved;
    Keyspaces "keyspaces" Any;
    Language "language" Any;
    Like "like" Any;
    Limit "limit" Reserved;
    List "list" Any;
    Login "login" Any;
    Map "map" Any;
    Masked "masked" Any;
    Materialized "materialized" Reserved;
    Maxwritetime "maxwritetime" Name;
    Mbean "mbean" Any;
    Mbeans "mbeans" Any;
    Modify "modify" Reserved;
    Nan "nan" Reserved;
    Nologin "nologin" Any;
    Norecursive "norecursive" Reserved;
    Nosuperuser "nosuperuser" Any;
    Not "not" Reserved;
    Null "null" Reserved;
    Of "of" Reserved;
    On "on" Reserved;
    Only "only" Any;
    Options "options" Any;
    Or "or" Reserved;
    Order "order" Reserved;
    Partition "partition" Any;
    Password "password" Any;
    Per "per" Any;
    Permission "permission" Any;
    Permissions "permissions" Any;
    Primary "primary" Reserved;
    Rename "rename" Reserved;
    Replace "replace" Any;
    Returns "returns" Any;
    Revoke "revoke" Reserved;
    Role "role" Any;
    Roles "roles" Any;
    Schema "schema" Reserved;
    Select "select" Reserved;
    SelectMasked "select_masked" Any;
    Set "set" Reserved;
    Sfunc "sfunc" Any;
    Smallint "smallint" Type(N::Smallint);
    Static "static" Any;
    Storage "storage" Any;
    Stype "stype" Any;
    Superuser "superuser" Any;
    Tables "tables" Any;
    Text "text" Type(N::Text);
    Time "time" Type(N::Time);
    Timestamp "timestamp" Type(N::Timestamp);
    Timeuuid "timeuuid" Type(N::Timeuuid);
    Tinyint "tinyint" Type(N::Tinyint);
    To "to" Reserved;
    Token "token" Reserved;
    Trigger "trigger" Any;
    Truncate "truncate" Reserved;
    Ttl "ttl" Name;
    Tuple "tuple" Any;
    TypeWord "type" Any;
    Types "types" Any;
    Unlogged "unlogged" Reserved;
    Unmask "unmask" Any;
    Unset "unset" Any;
    Update "update" Reserved;
    UseWord "use" Reserved;
    User "user" Any;
    Users "users" Any;
    Using "using" Reserved;
    Uuid "uuid" Type(N::Uuid);
    Values "values" Any;
    Varchar "varchar" Type(N::Varchar);
    Varint "varint" Type(N::Varint);
    Vector "vector" Any;
    View "view" Reserved;
    Where "where" Reserved;
    With "with" Reserved;
    Writetime "writetime" Name;
}

/// Words that are lexed as another keyword, and the booleans.
const SYNONYMS: &[(&str, Kind)] = &[
    ("columnfamily", Kind::Keyword(Keyword::Table)),
    ("columnfamilies", Kind::Keyword(Keyword::Tables)),
    ("true", Kind::Boolean),
    ("false", Kind::Boolean),
];

/// The longest word in the table. Longer words are identifiers.
const WORD_SIZE_MAX: usize = 16;

/// A power of two, a few times the number of words, so that most looks end at the first slot.
const SLOTS: usize = 1024;

/// Words packed in numbers, and what they are. A slot with packed word 0 is empty.
static TABLE: [(u128, Kind); SLOTS] = {
    let mut table = [(0u128, Kind::Ident); SLOTS];
    let mut at = 0;
    while at < KEYWORDS.len() {
        table = with(table, KEYWORDS[at].0.as_bytes(), Kind::Keyword(KEYWORDS[at].1));
        at += 1;
    }
    let mut at = 0;
    while at < SYNONYMS.len() {
        table = with(table, SYNONYMS[at].0.as_bytes(), SYNONYMS[at].1);
        at += 1;
    }
    table
};

const fn with(mut table: [(u128, Kind); SLOTS], word: &[u8], kind: Kind) -> [(u128, Kind); SLOTS] {
    let mut packed = 0u128;
    let mut at = 0;
    while at < word.len() {
        packed |= ((word[at] | 0x20) as u128) << (8 * at);
        at += 1;
    }
    let mut slot = slot_of(packed);
    while table[slot].0 != 0 {
        slot = (slot + 1) % SLOTS;
    }
    table[slot] = (packed, kind);
    table
}

#[inline]
const fn slot_of(packed: u128) -> usize {
    let mixed = (packed as u64) ^ ((packed >> 64) as u64).rotate_left(29);
    (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize
}

/// The kind of the word in the first `length` bytes of `text`: a keyword, a boolean or an
/// identifier. In any case of letters.
#[inline]
pub(super) fn classify(text: &[u8], length: usize) -> Kind {
    if length > WORD_SIZE_MAX {
        return Kind::Ident;
    }
    let packed = pack(text, length);
    let mut slot = slot_of(packed);
    loop {
        let (found, kind) = TABLE[slot];
        if found == packed {
            return kind;
        }
        if found == 0 {
            return Kind::Ident;
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// A word as a number. Setting bit 5 folds letters to lower case, leaves digits, and keeps `_`
/// apart from both.
#[inline]
fn pack(text: &[u8], length: usize) -> u128 {
    let bytes = match text.first_chunk::<WORD_SIZE_MAX>() {
        Some(chunk) => *chunk,
        None => {
            let mut chunk = [0; WORD_SIZE_MAX];
            chunk[..text.len()].copy_from_slice(text);
            chunk
        }
    };
    const FOLD: u128 = u128::from_ne_bytes([0x20; WORD_SIZE_MAX]);
    let unused = 8 * (WORD_SIZE_MAX - length);
    (u128::from_le_bytes(bytes) | FOLD) << unused >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_in_any_case() {
        for &(text, keyword, _) in KEYWORDS {
            assert_eq!(classify(text.as_bytes(), text.len()), Kind::Keyword(keyword));
            assert_eq!(classify(text.to_ascii_uppercase().as_bytes(), text.len()), Kind::Keyword(keyword));
            assert_eq!(keyword.text(), text);
        }
        assert_eq!(classify(b"ColumnFamily", 12), Kind::Keyword(Keyword::Table));
        assert_eq!(classify(b"FALSE", 5), Kind::Boolean);
        for name in ["selects", "selec", "a", "zzzz", "betweens", "superusers", "a_very_long_identifier"] {
            assert_eq!(classify(name.as_bytes(), name.len()), Kind::Ident, "{name}");
        }
    }

    #[test]
    fn the_table_is_sparse_enough() {
        assert!(KEYWORDS.len() * 4 < SLOTS);
        assert!(KEYWORDS.iter().all(|(text, _, _)| text.len() <= WORD_SIZE_MAX));
    }
}
