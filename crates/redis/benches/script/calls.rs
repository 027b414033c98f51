//! The contestants: calls as bytes, and how many decisions each makes.

use redis::cmd;
use tidegate_core::{Charge, Decision, Limit, LimitId, Quota, Store as _};
use tidegate_redis::{RedisOptions, RedisStore};

use crate::record::Recorder;
use crate::server::Server;

const PAGE: &str = include_str!("../../../../docs/textbook-script.md");
/// Keys that the calls go round.
const KEYS: usize = 1_024;

/// Calls that are sent in turn.
pub(crate) struct Contestant {
    pub(crate) name: &'static str,
    pub(crate) calls: Vec<Vec<u8>>,
    pub(crate) decisions_per_call: f64,
}

pub(crate) fn contestants(server: &Server) -> Vec<Contestant> {
    let plain = |name, calls| Contestant { name, calls, decisions_per_call: 1.0 };
    vec![
        plain("PING", vec![cmd("PING").get_packed_command()]),
        plain("GET", keys().map(|key| cmd("GET").arg(key).get_packed_command()).collect()),
        plain("empty script", vec![evalsha(server, "return 1").arg(0).get_packed_command()]),
        plain("textbook hash script", textbook(server)),
        plain("ours, one limit", ours(server, 1, 1)),
        plain("ours, three limits of one key", ours(server, 3, 1)),
        Contestant { decisions_per_call: 16.0, ..plain("ours, sixteen decisions in a call", ours(server, 1, 16)) },
    ]
}

fn keys() -> impl Iterator<Item = String> {
    (0..KEYS).map(|i| format!("client-{i:09}"))
}

fn evalsha(server: &Server, script: &str) -> redis::Cmd {
    let loaded: String = cmd("SCRIPT").arg("LOAD").arg(script).query(&mut server.connection()).expect("it loads");
    let mut call = cmd("EVALSHA");
    call.arg(loaded);
    call
}

/// The script of `docs/textbook-script.md`, at a rate that lets everything pass.
fn textbook(server: &Server) -> Vec<Vec<u8>> {
    let (_, rest) = PAGE.split_once("```lua\n").expect("the page shows a script");
    let (script, _) = rest.split_once("```").expect("the script ends");
    let call = evalsha(server, script);
    let of_key = |(i, key): (usize, String)| {
        let at = format!("{}.{:06}", 1_700_000_000, i);
        call.clone()
            .arg(1)
            .arg(format!("textbook:{key}"))
            .arg("1000000")
            .arg(1_000_000)
            .arg(at)
            .arg(1)
            .get_packed_command()
    };
    keys().enumerate().map(of_key).collect()
}

/// What a store sends for so many limits of a key, and for so many decisions that share a call.
fn ours(server: &Server, limits: usize, sharing: usize) -> Vec<Vec<u8>> {
    let recorder = Recorder::before(server.port());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut options = RedisOptions::default();
        options.deadline = std::time::Duration::from_secs(5);
        let store = RedisStore::new(&recorder.url(), options).expect("a store");
        // The first decision waits for the connection; those of a batch are then asked for at once.
        decide(&store, "first", 1).await;
        for batch in keys().collect::<Vec<_>>().chunks(sharing) {
            futures_util::future::join_all(batch.iter().map(|key| decide(&store, key, limits))).await;
        }
    });
    let charges = sharing * limits;
    let calls: Vec<_> =
        recorder.scripts().into_iter().filter(|call| call.keys == charges).map(|call| call.bytes).collect();
    assert!(calls.len() * sharing > KEYS / 2, "{} calls of {charges} charges", calls.len());
    calls
}

async fn decide(store: &RedisStore, key: &str, limits: usize) {
    let names = ["second", "minute", "hour"];
    let charges: Vec<_> = names[..limits].iter().map(|name| charge(name, key)).collect();
    let mut decisions = vec![Decision::unmade(&charges[0].quota); limits];
    let verdict = store.decide(&charges, &mut decisions).await.expect("the store answers");
    assert!(verdict.allowed);
}

/// A limit that lets everything pass, so that every call writes, as the textbook's does.
fn charge<'a>(name: &str, key: &'a str) -> Charge<'a> {
    let limit = "1000000/s burst 1000000".parse::<Limit>().expect("a limit");
    let quota: Quota = limit.quota().expect("with a quota");
    Charge::new(LimitId::of("bench", name), quota, key.as_bytes())
}
