//! Writes whose changes of views are more than one group of the commit log may be, in parts.
//!
//! For changes that cannot be refused any more. One is a change that Paxos has decided: where no
//! replica could apply it, each later conditional statement of the partition, and each repair of
//! Paxos, would find it undone, try to complete it, and fail. The other is a mutation of a logged
//! batch on a node alone: its client was told that the batch will be applied.
//!
//! 1. The locks are taken, and all changes of views are computed.
//! 2. Changes of some entries at a time are applied as one group, with the record of those that go
//!    to other nodes.
//! 3. The base is the last group: until then whoever begins anew computes the same changes.
//!
//! A crash in between leaves entries of views whose rows are not there yet. The change is not
//! recorded as committed then, and the record of the batch stands, so that it is found and applied
//! again.

use std::sync::Arc;

use rows::views::Entry;
use rows::{Mutation, ReadContext, ReadMode};
use storage::base_views::BaseViews;
use storage::commitlog::LogPosition;
use storage::materialized::{self, ViewChange};
use storage::{Engine, StorageError};

use super::{Divided, Locked, Routes, divide, places, settle, write_error};
use crate::replica::Replica;
use crate::replica::apply::WriteError;

/// The bytes of a part are one of so many parts of the largest mutation: the changes of other nodes
/// are one mutation, and those of one partition of a view too.
const PARTS_PER_MUTATION: usize = 4;
/// Bytes that a change takes beside its values, about.
const CHANGE_OVERHEAD: usize = 256;

impl Replica {
    /// As [`Replica::apply`], in parts, of mutations that write tables with views. The write ends
    /// though nobody waits for it any more.
    pub(in crate::replica) async fn apply_in_parts(
        &self,
        mutations: &[Mutation],
    ) -> Result<Option<LogPosition>, WriteError> {
        let turn = Arc::clone(&self.views.in_parts).acquire_owned().await.map_err(|_| WriteError::Overloaded)?;
        let turn = Arc::new(turn);
        loop {
            let views = self.engine.views();
            let guards = (self.lock_views(&views, mutations).await, Arc::clone(&turn));
            let (engine, routes) = (Arc::clone(&self.engine), self.views.routes.get().cloned());
            let mutations = mutations.to_vec();
            let parts = async move {
                let applied = apply(&engine, routes.as_ref(), &views, mutations).await;
                drop(guards);
                applied
            };
            match self.env.to_its_end("view-parts", parts).await {
                Err(WriteError::Storage(StorageError::ViewsChanged)) => {}
                applied => return applied,
            }
        }
    }

    /// As [`Replica::apply_now`], in parts. Err: the base is as it was; of the views some parts may
    /// have been applied, and the same call goes on with the rest.
    pub(crate) fn apply_now_in_parts(&self, mutations: &[Mutation]) -> Result<(), WriteError> {
        let Some(views) = self.engine.views_over(mutations) else { return self.apply_now(mutations).map(drop) };
        let open = Arc::clone(&self.views.gate).try_read_owned().map_err(|_| StorageError::Busy)?;
        let held = self.views.locks.try_lock(places(&views, mutations)).ok_or(StorageError::Busy)?;
        let _locked = Locked { _held: held, _open: open };
        let (now, context) = (self.env.clock.now_seconds(), ReadContext::new(ReadMode::Background));
        let bytes_max = part_bytes_max(&self.engine);
        let mut changes = materialized::changes(&self.engine, &views, mutations, now, &context).map_err(write_error)?;
        loop {
            let part = take(&mut changes, bytes_max);
            if part.is_empty() {
                break;
            }
            let Divided { mut here, remote } = self.divide(part);
            let settled = here.iter_mut().try_for_each(|change| settle(&self.engine, change, now, &context));
            settled.map_err(WriteError::Read)?;
            let mut group: Vec<Mutation> = here.into_iter().flat_map(ViewChange::into_mutations).collect();
            group.extend(remote.as_ref().map(|remote| remote.record()));
            self.engine.apply_with_views(&group, views.number)?;
            if let Some(remote) = remote {
                remote.send();
            }
        }
        self.engine.apply_with_views(mutations, views.number)?;
        Ok(())
    }
}

/// The bytes of changes that are applied as one group.
fn part_bytes_max(engine: &Engine) -> usize {
    engine.options.commitlog.largest_mutation() / PARTS_PER_MUTATION
}

/// Applies the changes of views that follow from mutations, and the mutations last. The caller
/// holds their locks.
async fn apply(
    engine: &Arc<Engine>,
    routes: Option<&Arc<dyn Routes>>,
    views: &Arc<BaseViews>,
    mutations: Vec<Mutation>,
) -> Result<Option<LogPosition>, WriteError> {
    let now = engine.env.clock.now_seconds();
    let bytes_max = part_bytes_max(engine);
    let mut changes = {
        let (engine, views, mutations) = (Arc::clone(engine), Arc::clone(views), mutations.clone());
        let env = engine.env.clone();
        let job = move || {
            let context = ReadContext::new(ReadMode::Background);
            materialized::changes(&engine, &views, &mutations, now, &context)
        };
        env.blocking("view", job).await.map_err(|_| WriteError::Overloaded)?.map_err(write_error)?
    };
    loop {
        let part = take(&mut changes, bytes_max);
        if part.is_empty() {
            break;
        }
        let Divided { here, remote } = divide(routes, part);
        let mut group = settled(engine, here, now).await?;
        group.extend(remote.as_ref().map(|remote| remote.record()));
        apply_group(engine, group, views.number).await?;
        if let Some(remote) = remote {
            remote.send();
        }
    }
    apply_group(engine, mutations, views.number).await
}

/// Takes changes of so many bytes, or a single one of more, off the end.
fn take(changes: &mut Vec<ViewChange>, bytes_max: usize) -> Vec<ViewChange> {
    let (mut part, mut bytes) = (Vec::new(), 0);
    while let Some(last) = changes.last_mut() {
        let mut from = last.entries.len();
        while let Some(entry) = from.checked_sub(1).map(|at| &last.entries[at]) {
            let size = size_of(entry);
            if bytes > 0 && bytes + size > bytes_max {
                break;
            }
            bytes += size;
            from -= 1;
        }
        let entries = last.entries.split_off(from);
        if !entries.is_empty() {
            part.push(ViewChange { base: last.base.clone(), view: Arc::clone(&last.view), entries });
        }
        if from > 0 {
            return part;
        }
        changes.pop();
    }
    part
}

fn size_of(entry: &Entry) -> usize {
    CHANGE_OVERHEAD + entry.key.key.len() + entry.row.data_size()
}

/// As [`Replica::settled`], in the background.
async fn settled(engine: &Arc<Engine>, mut changes: Vec<ViewChange>, now: u32) -> Result<Vec<Mutation>, WriteError> {
    let of_job = Arc::clone(engine);
    let job = move || {
        let context = ReadContext::new(ReadMode::Background);
        changes.iter_mut().try_for_each(|change| settle(&of_job, change, now, &context))?;
        Ok(changes)
    };
    let settled = engine.env.blocking("view", job).await.map_err(|_| WriteError::Overloaded)?;
    Ok(settled.map_err(WriteError::Read)?.into_iter().flat_map(ViewChange::into_mutations).collect())
}

/// Applies a group once there is room for it.
async fn apply_group(
    engine: &Arc<Engine>,
    group: Vec<Mutation>,
    number: u64,
) -> Result<Option<LogPosition>, WriteError> {
    let group: Arc<[Mutation]> = group.into();
    loop {
        engine.admit().await;
        let (of_job, group) = (Arc::clone(engine), Arc::clone(&group));
        let job = move || of_job.apply_with_views(&group, number);
        match engine.env.blocking("view", job).await.map_err(|_| WriteError::Overloaded)? {
            Err(StorageError::Busy) => engine.log.ready().await,
            applied => return Ok(applied?.position),
        }
    }
}
