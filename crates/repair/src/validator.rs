//! Hashes the partitions of a table into trees, some rows at a time.
//!
//! The hash of a partition is two times MurmurHash3, with seeds 1000 and 2000, over the bytes that
//! a digest of the partition would hash, with all columns of the table named. Partitions without
//! any data left are passed over. Agrees with `org.apache.cassandra.repair.Validator`.

use internode::payload::digest::{Digester, Sink};
use rows::codec::{CodecColumn, EncodedCell, EncodingStats, Header, RowVisitor};
use rows::{ClusteringValues, Liveness, MaybeEncoded, PartitionHead, PartitionStream, ReadError};
use schema::{ColumnMetadata, TableMetadata};
use stdx::murmur3::standard::StandardMurmur3;
use types::Token;

use crate::tree::Hash;
use crate::trees::{MerkleTrees, TreesFiller};

/// Seeds of the halves of a hash.
const SEEDS: [u64; 2] = [1000, 2000];

struct Murmur(StandardMurmur3<2>);

impl Sink for Murmur {
    #[inline]
    fn take_in(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }
}

/// Trees that are being filled.
pub struct Validator {
    trees: TreesFiller,
    digester: Digester<Murmur>,
    /// The head of the partition that is being read, if nothing of it was hashed yet; None
    /// otherwise.
    head: Option<PartitionHead>,
    /// The token of the partition that is being read, if a part of it was hashed; None otherwise.
    begun: Option<Token>,
    partitions: u64,
}

impl Validator {
    /// Fills empty trees with the partitions of a table.
    pub fn new(table: &TableMetadata, trees: MerkleTrees) -> Self {
        let columns = |columns: &[ColumnMetadata]| columns.iter().map(CodecColumn::of).collect();
        let clustering = table.clustering.iter().map(|column| column.ty.clone()).collect();
        let (statics, regulars) = (columns(&table.statics), columns(&table.regulars));
        let header = Header::new(EncodingStats::default(), clustering, statics, regulars);
        let digester = Digester::of_columns(Murmur(StandardMurmur3::new(SEEDS)), header, false);
        Self { trees: TreesFiller::new(trees), digester, head: None, begun: None, partitions: 0 }
    }

    /// Reads at most `count` heads, rows and markers. True: the stream has ended.
    pub fn advance(&mut self, stream: &mut dyn PartitionStream, count: usize) -> Result<bool, ReadError> {
        let mut left = count;
        while left > 0 {
            if self.head.is_none() && self.begun.is_none() {
                self.head = stream.next_partition()?;
                if self.head.is_none() {
                    return Ok(true);
                }
                left -= 1;
                continue;
            }
            let shown = stream.show_encoded(&mut PartitionHasher(self), left)?;
            left = left.saturating_sub(shown.rows);
            if shown.has_ended {
                self.end();
                continue;
            }
            if left == 0 {
                break;
            }
            left -= 1;
            let Some(next) = stream.next_maybe_encoded()? else {
                self.end();
                continue;
            };
            self.begin();
            match next {
                MaybeEncoded::Encoded(row) => self.digester.encoded(&row)?,
                MaybeEncoded::Decoded(unfiltered) => self.digester.unfiltered(&unfiltered),
            }
        }
        Ok(false)
    }

    /// Hashes the head of the partition, if that was not done yet.
    fn begin(&mut self) {
        if let Some(head) = self.head.take() {
            let has_static_row = head.static_row.as_ref().is_some_and(|row| !row.is_empty());
            self.digester.partition(&head, has_static_row);
            self.begun = Some(head.key.token);
        }
    }

    fn end(&mut self) {
        // a head alone counts if it has something
        self.head.take_if(|head| is_empty(head));
        self.begin();
        if let Some(token) = self.begun.take() {
            self.add(token);
        }
    }

    fn add(&mut self, token: Token) {
        let mut hash: Hash = [0; 32];
        let [low, high] = self.digester.sink().0.finish();
        hash[..16].copy_from_slice(&low);
        hash[16..].copy_from_slice(&high);
        let is_in = self.trees.add(token, &hash);
        debug_assert!(is_in, "a validation reads the ranges of its trees");
        self.partitions += 1;
    }

    /// Number of partitions that were hashed.
    pub fn partitions(&self) -> u64 {
        self.partitions
    }

    /// Completes the trees.
    pub fn finish(self) -> MerkleTrees {
        self.trees.finish()
    }
}

/// Hashes the rows that it is given, and before the first of them the head of their partition.
struct PartitionHasher<'v>(&'v mut Validator);

impl RowVisitor for PartitionHasher<'_> {
    #[inline]
    fn begin(&mut self, clustering: &ClusteringValues, liveness: &Liveness) {
        self.0.begin();
        self.0.digester.begin(clustering, liveness);
    }

    #[inline]
    fn cell(&mut self, cell: EncodedCell<'_>) {
        self.0.digester.cell(cell);
    }
}

fn is_empty(head: &PartitionHead) -> bool {
    head.deletion.is_live() && head.static_row.as_ref().is_none_or(|row| row.is_empty())
}
