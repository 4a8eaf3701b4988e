//! The coordinator's steps of an incremental repair, before and after its sessions. Agrees with
//! `org.apache.cassandra.repair.consistent.CoordinatorSession`.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{join_all, try_join_all};
use internode::Verb;
use internode::payload::repair::SessionId;
use internode::payload::repair::consistent::PrepareConsistent;

use crate::clock::uuid_text;
use crate::node::Node;
use crate::repair::messages::Patience;
use crate::repair_state::command::Command;
use crate::repair_state::{RepairResult, RepairResultKey};

/// An incremental repair and its participants.
pub(in crate::repair) struct CoordinatorSession<'a> {
    node: &'a Arc<Node>,
    command: &'a Command,
    /// The nodes that take part, this node among them.
    participants: Vec<SocketAddr>,
}

impl<'a> CoordinatorSession<'a> {
    /// The repair of a command by these nodes and this one.
    pub fn new(node: &'a Arc<Node>, command: &'a Command, others: &BTreeSet<SocketAddr>) -> Self {
        assert!(!others.contains(&node.identity.broadcast), "a node takes part in a repair once");
        let participants = others.iter().copied().chain([node.identity.broadcast]).collect();
        Self { node, command, participants }
    }

    fn local(&self) -> SocketAddr {
        self.node.identity.broadcast
    }

    fn id(&self) -> SessionId {
        self.command.id
    }

    /// Has all participants put the data apart. Err: one of them could not.
    pub async fn prepare(&self) -> Result<(), String> {
        let (session, coordinator) = (self.id(), self.local());
        let request = PrepareConsistent { session, coordinator, participants: self.participants.clone() };
        let (verb, payload) = (Verb::PrepareConsistentReq, Bytes::from(request.encode()));
        let prepare = |participant: &SocketAddr| {
            let (participant, request, payload) = (*participant, request.clone(), payload.clone());
            async move {
                let key = RepairResultKey::Prepared(session, participant);
                let result = self.node.repairs.expect(key.clone());
                let asked = match participant == coordinator {
                    true => super::begin(self.node, request),
                    false => self.ask(participant, verb, payload.clone()).await,
                };
                self.answer(participant, key, asked, result, Patience::Asks(verb, payload)).await
            }
        };
        try_join_all(self.participants.iter().map(prepare)).await.map(drop)
    }

    /// Has all participants promise to end the session well, and then tells them to do so.
    pub async fn finalize(&self) -> Result<(), String> {
        let (session, local) = (self.id(), self.local());
        let (verb, payload) = (Verb::FinalizeProposeMsg, Bytes::from(session.to_vec()));
        let propose = |participant: &SocketAddr| {
            let (participant, payload) = (*participant, payload.clone());
            async move {
                let key = RepairResultKey::Promised(session, participant);
                let result = self.node.repairs.expect(key.clone());
                let asked = match participant == local {
                    true => super::propose(self.node, local, session),
                    false => self.ask(participant, verb, payload.clone()).await,
                };
                self.answer(participant, key, asked, result, Patience::Asks(verb, payload)).await
            }
        };
        try_join_all(self.participants.iter().map(propose)).await?;
        // somebody may have failed the session after the last promise
        if !super::commit(self.node, &session)? {
            return Err(self.failed());
        }
        // otherwise a start could find the session promised, and fail what others have ended well
        if let Err(error) = self.node.engine.log.sync().await {
            tracing::warn!(%error, "the good end of a repair session is not durable: participants have to ask for it");
            return Ok(());
        }
        // from here on the session ends well: a participant that is not told now asks later
        let others = self.participants.iter().filter(|participant| **participant != local);
        join_all(others.map(|to| super::tell(self.node, *to, Verb::FinalizeCommitMsg, session.to_vec()))).await;
        Ok(())
    }

    fn failed(&self) -> String {
        format!("Incremental repair session {} has failed", uuid_text(&self.id()))
    }

    async fn ask(&self, participant: SocketAddr, verb: Verb, payload: Bytes) -> Result<(), String> {
        let result = self.node.tell_repair(participant, verb, payload).await;
        result.map_err(|error| format!("{} at /{participant}: {error}", verb.name()))
    }

    /// Waits for the vote of a participant that was asked.
    async fn answer(
        &self,
        participant: SocketAddr,
        key: RepairResultKey,
        asked: Result<(), String>,
        result: tokio::sync::oneshot::Receiver<RepairResult>,
        patience: Patience,
    ) -> Result<(), String> {
        if let Err(why) = asked {
            self.node.repairs.forget(&key);
            tracing::warn!(why, peer = %participant, "a participant of an incremental repair refuses");
            return Err(self.failed());
        }
        match self.node.await_repair(self.command, participant, &key, result, patience).await? {
            RepairResult::Vote(true) => Ok(()),
            _ => {
                tracing::warn!(peer = %participant, "a participant of an incremental repair has failed");
                Err(self.failed())
            }
        }
    }
}
