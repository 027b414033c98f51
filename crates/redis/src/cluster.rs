//! A cluster: a link to each primary, and a map of who serves which slot.
//!
//! Redirects are followed here, at the asking side and under the one deadline, since each of them proves that the script
//! did not run. Whatever may have run is not asked again. The map is fetched anew when a node redirects, is lost or says
//! that the cluster is down; `refresh` bounds how often.

use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Sleep, sleep};

use crate::address::{HostPort, Place};
use crate::call::{Lane, Manner};
use crate::link::{Common, Link};
use crate::redirect::Redirect;
use crate::slot_map::{Node, Range, SlotMap};
use crate::state::Nodes;
use crate::target::Target;
use crate::wire::{Request, Seen};
use crate::{FailureKind, StoreError};

/// Calls under way to one node before those who wait are gathered: their slots differ, so that they cannot share.
const CALLS_MAX: usize = 16;
/// Redirects that one decision follows.
const REDIRECTS_MAX: u32 = 16;
/// The pause before keys that are on their way are asked for again, and the longest.
const TRY_AGAIN: Duration = Duration::from_millis(1);
const TRY_AGAIN_MAX: Duration = Duration::from_millis(64);

/// Has the map been fetched?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Whoever asks waits for it.
    NotYet,
    /// No node that could tell was reached; whoever asks is told at once.
    No,
    Yes,
}

pub(crate) struct Cluster {
    pub(crate) seeds: Vec<HostPort>,
    pub(crate) common: Arc<Common>,
    map: RwLock<Arc<SlotMap>>,
    pub(crate) known: watch::Sender<Known>,
}

impl Cluster {
    pub(crate) fn new(seeds: Vec<HostPort>, common: Arc<Common>) -> Self {
        let map = RwLock::new(Arc::new(SlotMap::empty()));
        Self { seeds, common, map, known: watch::Sender::new(Known::NotYet) }
    }

    pub(crate) fn map(&self) -> Arc<SlotMap> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn count(&self, nodes: &mut Nodes) {
        self.map().nodes().for_each(|node| node.link.count(nodes));
    }

    /// Asks the node that serves `slot`, wherever it is now.
    pub(crate) async fn ask(
        &self,
        request: &Arc<Request>,
        slot: u16,
        mut deadline: Pin<&mut Sleep>,
    ) -> Result<Seen, StoreError> {
        self.wait_until_known(deadline.as_mut()).await?;
        let mut node = self.owner(slot)?;
        let mut lane = Lane::shared(slot);
        let mut pause = TRY_AGAIN;
        for turn in 0..REDIRECTS_MAX {
            let error = match node.link.ask(request, lane, deadline.as_mut()).await {
                Ok(seen) => return Ok(seen),
                Err(error) => error,
            };
            let Some(redirect) = Redirect::of(&error) else {
                if error.kind() == Some(FailureKind::ClusterDown) {
                    self.common.lost.notify_one();
                }
                return Err(error);
            };
            // Nodes that send each other's callers back and forth have yet to agree.
            if redirect == Redirect::TryAgain || turn > 0 {
                tokio::select! {
                    () = sleep(pause) => {}
                    () = deadline.as_mut() => return Err(error),
                }
                pause = (pause * 2).min(TRY_AGAIN_MAX);
            }
            (node, lane.manner) = match redirect {
                Redirect::Moved(to) => (self.moved(slot, to, &node), Manner::Shared),
                Redirect::Ask(to) => (self.known_or_new(to, &node), Manner::Asking),
                Redirect::TryAgain => (self.owner(slot)?, Manner::Alone),
            };
        }
        Err(StoreError::Server(format!("MOVED {slot}, and {REDIRECTS_MAX} redirects led nowhere")))
    }

    async fn wait_until_known(&self, deadline: Pin<&mut Sleep>) -> Result<(), StoreError> {
        if *self.known.borrow() == Known::Yes {
            return Ok(());
        }
        let mut known = self.known.subscribe();
        let known = tokio::select! {
            known = known.wait_for(|known| *known != Known::NotYet) => known.map_or(Known::No, |known| *known),
            () = deadline => return Err(StoreError::Deadline),
        };
        if known == Known::Yes { Ok(()) } else { Err(StoreError::Unavailable) }
    }

    fn owner(&self, slot: u16) -> Result<Arc<Node>, StoreError> {
        self.map().owner(slot).cloned().ok_or_else(|| {
            self.common.lost.notify_one();
            StoreError::Server(format!("CLUSTERDOWN no node serves slot {slot}"))
        })
    }

    /// A node has said that the slot is another one's: that is known from now on, until the map is fetched anew.
    fn moved(&self, slot: u16, to: Option<HostPort>, from: &Arc<Node>) -> Arc<Node> {
        let node = self.known_or_new(to, from);
        self.change(|map| map.give(slot, slot, &node));
        self.common.lost.notify_one();
        node
    }

    /// The node that a redirect names; one that does not name its host is where `from` is.
    fn known_or_new(&self, to: Option<HostPort>, from: &Arc<Node>) -> Arc<Node> {
        let at = to.unwrap_or_else(|| from.at.clone());
        if let Some(node) = self.map().node(&at) {
            return Arc::clone(node);
        }
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        // Another task may have been faster.
        if let Some(node) = map.node(&at) {
            return Arc::clone(node);
        }
        let node = self.open(at);
        // A node that takes its first slot over is in no map yet.
        Arc::make_mut(&mut map).meet(&node);
        node
    }

    fn open(&self, at: HostPort) -> Arc<Node> {
        let target = Target::At(Place::Tcp(at.clone()));
        Arc::new(Node { at, link: Link::open(target, &self.common, CALLS_MAX) })
    }

    fn change(&self, change: impl FnOnce(&mut SlotMap)) {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut map));
    }

    /// Takes in what a node says of all slots. Links to nodes that are still there are kept.
    pub(crate) fn learn(&self, ranges: &[Range]) {
        let before = self.map();
        let mut map = SlotMap::empty();
        for range in ranges {
            let known = map.node(&range.at).or_else(|| before.node(&range.at)).cloned();
            let node = known.unwrap_or_else(|| self.open(range.at.clone()));
            map.give(range.first, range.last, &node);
        }
        self.change(|old| *old = map);
        self.known.send_replace(Known::Yes);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Whoever refreshes the map sees that there is none any more.
        self.common.lost.notify_one();
    }
}
