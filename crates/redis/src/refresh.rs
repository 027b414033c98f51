//! Fetching a cluster's map, at most ten times a second.
//!
//! Any node that answers will do: those that are known first, then those of the URL. Each fetch has a connection of its
//! own, so that it does not depend on a link that may be what was lost.

use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::cmd;
use tokio::time::sleep;

use crate::FailureKind;
use crate::address::{HostPort, Place};
use crate::cluster::{Cluster, Known};
use crate::failure::{Against, Fault};
use crate::link::Common;
use crate::serve::{jittered, random};
use crate::slot_map::{Range, ranges};

/// The shortest pause between two fetches, and the longest, after several that failed.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Keeps the map of a cluster fresh, as long as there is one.
pub(crate) async fn keep(cluster: Weak<Cluster>, common: Arc<Common>) {
    let mut pause = PAUSE;
    while let Some(cluster) = cluster.upgrade() {
        let is_known = fetch(&cluster).await;
        drop(cluster);
        sleep(jittered(pause)).await;
        if is_known {
            pause = PAUSE;
            common.lost.notified().await;
        } else {
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// Fetches the map from the first node that can tell. Is it known now?
async fn fetch(cluster: &Cluster) -> bool {
    let map = cluster.map();
    // A node that is down is asked last; it may be all there is. Of the others another one each time: one of them may be
    // cut off from the rest, and not know it.
    let (mut up, down): (Vec<_>, Vec<_>) = map.nodes().partition(|node| node.link.is_up());
    let places = up.len().max(1);
    up.rotate_left(random() as usize % places);
    let known = up.into_iter().chain(down).map(|node| &node.at);
    for at in known.chain(&cluster.seeds) {
        match ask(cluster, at).await {
            Ok(ranges) => {
                cluster.learn(&ranges);
                return true;
            }
            Err(fault) if fault.kind.against() == Against::Configuration => cluster.common.complaints.tell(&fault),
            Err(_) => {}
        }
    }
    cluster.known.send_if_modified(|known| {
        let is_first = *known == Known::NotYet;
        if is_first {
            *known = Known::No;
        }
        is_first
    });
    false
}

async fn ask(cluster: &Cluster, at: &HostPort) -> Result<Vec<Range>, Fault> {
    let connection = cluster.common.dialer.dial(&Place::Tcp(at.clone())).await?;
    let mut question = cmd("CLUSTER");
    question.arg("SLOTS");
    let answer = connection.ask(&question).await?;
    let ranges = ranges(answer, at).ok_or_else(|| Fault::new(FailureKind::Malformed, "no slots"))?;
    // A node that has met no other knows of none.
    if ranges.is_empty() { Err(Fault::new(FailureKind::ClusterDown, "no slot is served")) } else { Ok(ranges) }
}
