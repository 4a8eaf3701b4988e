//! Graphs of drawn clusters against a plain scan: at least 95 in 100 of the nearest ten are found,
//! whatever the function and the segments; all rows are found where all are wanted; damaged bytes
//! are refused or read, and never panic.

use bytes::Bytes;
use rows::ReadMode;
use types::Similarity;

use super::{GraphWriter, VectorGraph};

/// A sequence of numbers from a seed.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn float(&mut self) -> f32 {
        self.below(2001) as f32 / 1000.0 - 1.0
    }
}

/// Vectors around centers.
fn clusters(drawn: &mut Drawn, count: usize, dimension: usize) -> Vec<Vec<f32>> {
    let centers: Vec<Vec<f32>> = (0..40).map(|_| (0..dimension).map(|_| drawn.float()).collect()).collect();
    let near = |drawn: &mut Drawn| {
        let center = &centers[drawn.below(40) as usize];
        center.iter().map(|value| value + 0.4 * drawn.float()).collect()
    };
    (0..count).map(|_| near(drawn)).collect()
}

fn serialized(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_be_bytes()).collect()
}

fn written(vectors: &[Vec<f32>], similarity: Similarity, segment: usize) -> Bytes {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let disk = env::real::env().disk;
    let dimension = vectors[0].len() as u32;
    let mut writer = GraphWriter::with_segments_of(&*disk, path.clone(), similarity, dimension, segment).unwrap();
    for (row, vector) in vectors.iter().enumerate() {
        writer.add(&serialized(vector), row as u32).unwrap();
    }
    writer.finish(b"definition", vectors.len() as u32, 17).unwrap();
    disk.read_all(&path, 1 << 30).unwrap().into()
}

/// Functions, with how many vectors of which dimension.
const CASES: [(Similarity, usize, usize); 3] =
    [(Similarity::Cosine, 2000, 32), (Similarity::Euclidean, 600, 12), (Similarity::DotProduct, 600, 12)];

#[test]
fn near_vectors_are_found() {
    for (seed, (similarity, count, dimension)) in CASES.into_iter().enumerate() {
        let mut drawn = Drawn(seed as u64);
        let vectors = clusters(&mut drawn, count, dimension);
        for segment in if count == 2000 { vec![1 << 30] } else { vec![1 << 30, 64 << 10] } {
            let graph = VectorGraph::over(written(&vectors, similarity, segment)).unwrap();
            assert_eq!((graph.fingerprint(), graph.of_data()), (&b"definition"[..], (count as u32, 17)));
            assert_eq!(graph.segments.len() == 1, segment == 1 << 30);
            let (mut found, mut wanted, mut with_effort) = (0, 0, 0);
            for _ in 0..20 {
                let query = clusters(&mut drawn, 1, dimension).remove(0);
                let query = similarity.form(query).unwrap();
                let mut exact: Vec<(f32, u32)> = Vec::new();
                for (row, vector) in vectors.iter().enumerate() {
                    exact.push((similarity.rank(&query, &similarity.form(vector.clone()).unwrap()), row as u32));
                }
                exact.sort_by(|a, b| b.0.total_cmp(&a.0));
                let mut near = graph.search(&query, 10, 1, ReadMode::Background).unwrap().rows;
                near.sort_by(|a, b| b.rank.total_cmp(&a.rank));
                near.truncate(10);
                assert_eq!(near.len(), 10);
                for one in &near {
                    assert!(exact.iter().any(|(rank, row)| *row == one.row && *rank == one.rank), "{one:?}");
                }
                let mut more = graph.search(&query, 10, 2, ReadMode::Background).unwrap().rows;
                more.sort_by(|a, b| b.rank.total_cmp(&a.rank));
                let is_near = |row: u32| exact[..10].iter().any(|(_, near)| *near == row);
                with_effort += more.iter().take(10).filter(|one| is_near(one.row)).count();
                wanted += 10;
                found += near.iter().filter(|one| exact[..10].iter().any(|(_, row)| *row == one.row)).count();
            }
            assert!(found * 100 >= wanted * 95, "{similarity:?} in segments of {segment}: {found} of {wanted}");
            assert!(with_effort >= found, "more vectors were compared: {with_effort}, {found} of {wanted}");
        }
    }
}

#[test]
fn equal_vectors_keep_their_rows() {
    let vectors: Vec<Vec<f32>> = (0..300).map(|row| vec![(row % 3) as f32, 1.0]).collect();
    let graph = VectorGraph::over(written(&vectors, Similarity::Euclidean, 1 << 30)).unwrap();
    let near = graph.search(&[1.0, 1.0], 300, 1, ReadMode::Background).unwrap();
    assert_eq!((near.rows.len(), near.below), (300, None));
    let mut nearest: Vec<u32> = near.rows.iter().filter(|one| one.rank == 0.0).map(|one| one.row).collect();
    nearest.sort_unstable();
    assert_eq!(nearest, (0..300).filter(|row| row % 3 == 1).collect::<Vec<_>>());
}

/// A thousand rows have one vector: a search gives no more of them than it is asked for, and says
/// which rank the others have.
#[test]
fn rows_of_one_vector_are_given_as_far_as_wanted() {
    let vector = |row: u32| if row < 1000 { vec![1.0, 1.0] } else { vec![row as f32, 1.0] };
    let vectors: Vec<Vec<f32>> = (0..1200).map(vector).collect();
    let graph = VectorGraph::over(written(&vectors, Similarity::Euclidean, 1 << 30)).unwrap();
    for (wanted, most) in [(10, 10), (100, 201), (999, 999)] {
        let near = graph.search(&[1.0, 1.0], wanted, 1, ReadMode::Background).unwrap();
        assert_eq!((near.rows.len(), near.below), (most, Some(0.0)), "{wanted}");
        assert!(near.rows.iter().all(|one| one.rank == 0.0 && one.row < 1000), "{wanted}");
    }
    let near = graph.search(&[1.0, 1.0], usize::MAX, 1, ReadMode::Background).unwrap();
    assert_eq!((near.rows.len(), near.below), (1200, None));
    // the numbers of such rows count for the memory of a segment, too
    let graph = VectorGraph::over(written(&vectors[..1000], Similarity::Euclidean, 1 << 10)).unwrap();
    assert!(graph.segments.len() > 1);
}

#[test]
fn vectors_without_a_rank_are_left_out() {
    let vectors = vec![vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![1.0, 2.0]];
    let graph = VectorGraph::over(written(&vectors, Similarity::Cosine, 1 << 30)).unwrap();
    let rows = graph.search(&[1.0, 0.0], 10, 1, ReadMode::Background).unwrap().rows;
    assert_eq!(rows.iter().map(|one| one.row).collect::<Vec<_>>(), [2]);
    assert_eq!(graph.vectors(), 1);
}

#[test]
fn damage_is_refused_or_read() {
    let mut drawn = Drawn(7);
    let vectors = clusters(&mut drawn, 120, 4);
    let bytes = written(&vectors, Similarity::Euclidean, 1 << 30);
    for _ in 0..300 {
        let mut damaged = bytes.to_vec();
        let at = drawn.below(damaged.len() as u64) as usize;
        damaged[at] ^= 1 << drawn.below(8);
        if let Ok(graph) = VectorGraph::over(damaged.into()) {
            let _ = graph.search(&[0.0; 4], 10, 1, ReadMode::Background);
        }
    }
}
