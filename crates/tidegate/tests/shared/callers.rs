//! Callers that never stop asking, while something happens to the store.
//!
//! They run on a thread of their own, so a test may block. Three limits are asked for, one of each failure mode, more often
//! than they let pass.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tidegate::{Charge, Decision, Handling, LimitId, Quota, Shared, SharedOptions, Source, Store as _};
use tidegate_redis::RedisStore;

use crate::given::{options, quota};
use crate::seen::{Asked, Seen};

/// What each of the three limits allows. Far more is asked for, and an outage is shorter than the bucket takes to fill, so
/// that what is lost with it is seen.
pub(crate) const LIMIT: &str = "50/s burst 200";
/// The key of all three.
pub(crate) const KEY: &str = "key";
/// The failure modes of the three limits.
pub(crate) const DECLARED: [&str; 3] = ["allow", "deny", "local:0.5"];
/// Tasks that ask for each of the limits, and the pause of each between two questions.
const TASKS: usize = 4;
const PAUSE: Duration = Duration::from_millis(1);
/// Longer than any recovery may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Callers, until they are told to end.
pub(crate) struct Callers {
    all: Arc<All>,
    thread: JoinHandle<()>,
}

struct All {
    has_ended: AtomicBool,
    seen: Mutex<Vec<Asked>>,
}

impl Callers {
    /// Callers of the store at `url`, with this deadline. They have been answered by it when this returns.
    pub(crate) fn of(url: &str, deadline: Duration) -> Self {
        let all = Arc::new(All { has_ended: AtomicBool::new(false), seen: Mutex::new(Vec::new()) });
        let (of_thread, url) = (Arc::clone(&all), url.to_owned());
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(ask_all(&of_thread, &url, deadline));
        });
        let callers = Self { all, thread };
        callers.answered_by(Source::Store);
        callers
    }

    /// Waits until each limit is answered by `source`, not counting what was asked before this. How long did it take?
    pub(crate) fn answered_by(&self, source: Source) -> Duration {
        let start = Instant::now();
        let first = |declared: usize| {
            let seen = self.all.seen.lock().unwrap();
            let mut recent = seen.iter().rev().take_while(|asked| asked.at + asked.took >= start);
            recent.find(|asked| asked.at >= start && asked.source == source && asked.declared == declared).is_some()
        };
        while !(0..DECLARED.len()).all(first) {
            assert!(start.elapsed() < PATIENCE, "nobody was answered by {}", source.name());
            thread::sleep(Duration::from_millis(2));
        }
        start.elapsed()
    }

    /// Lets them ask for a while.
    pub(crate) fn go_on_for(&self, span: Duration) {
        thread::sleep(span);
    }

    /// Ends them; gives what they saw.
    pub(crate) fn end(self) -> Seen {
        self.all.has_ended.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
        let asked = std::mem::take(&mut *self.all.seen.lock().unwrap());
        Seen::new(asked)
    }
}

async fn ask_all(all: &Arc<All>, url: &str, deadline: Duration) {
    let redis = RedisStore::new(url, options(deadline)).unwrap();
    let shared = Arc::new(Shared::new(redis, SharedOptions::default()));
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS * DECLARED.len() {
        let (all, shared) = (Arc::clone(all), Arc::clone(&shared));
        tasks.spawn(async move {
            while !all.has_ended.load(Ordering::SeqCst) {
                let asked = ask(&shared, task % DECLARED.len()).await;
                all.seen.lock().unwrap().push(asked);
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
    tasks.join_all().await;
}

async fn ask(shared: &Shared, declared: usize) -> Asked {
    let quota: Quota = quota(LIMIT);
    let handling = Handling::default().with_on_failure(DECLARED[declared].parse().unwrap());
    let charge = Charge::new(LimitId::of("chaos", DECLARED[declared]), quota, KEY.as_bytes()).with_handling(handling);
    let mut decisions = [Decision::unmade(&quota)];
    let at = Instant::now();
    let verdict = shared.decide(&[charge], &mut decisions).await.unwrap();
    Asked {
        declared,
        at,
        took: at.elapsed(),
        source: verdict.source,
        is_allowed: verdict.allowed,
        held_by: decisions[0].held_by(),
        stamp_ns: decisions[0].decided_at().as_nanos(),
    }
}
