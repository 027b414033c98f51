//! The script, which is one to the server and a file for each idea to whoever reads it, and its name.

use redis::{Cmd, cmd};

use crate::wire::Request;

const SOURCE: &str = concat!(
    include_str!("scripts/head.lua"),
    include_str!("scripts/bucket.lua"),
    include_str!("scripts/counter.lua"),
    include_str!("scripts/log.lua"),
    include_str!("scripts/decide.lua"),
);

/// The line of the script that reads the clock, and the only one.
#[cfg(test)]
pub(crate) const READS_THE_CLOCK: &str = "local time = call('TIME')";

/// The script, and the digest by which a server that has seen it knows it.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) source: String,
    pub(crate) digest: String,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self { source: SOURCE.to_owned(), digest: digest(SOURCE) }
    }

    /// Calls the script by its digest.
    pub(crate) fn by_digest<'a>(&self, requests: impl Iterator<Item = &'a Request> + Clone) -> Cmd {
        call("EVALSHA", &self.digest, requests)
    }

    /// Calls the script with its source, for a server that answered that it has not seen it: proof that it did not run.
    pub(crate) fn by_source<'a>(&self, requests: impl Iterator<Item = &'a Request> + Clone) -> Cmd {
        call("EVAL", &self.source, requests)
    }
}

fn call<'a>(how: &str, script: &str, requests: impl Iterator<Item = &'a Request> + Clone) -> Cmd {
    let mut call = cmd(how);
    let keys: usize = requests.clone().map(|request| request.keys.len()).sum();
    call.arg(script).arg(keys);
    requests.clone().flat_map(|request| &request.keys).for_each(|key| {
        call.arg(key);
    });
    requests.flat_map(|request| &request.terms).for_each(|terms| {
        call.arg(terms.as_slice());
    });
    call
}

/// The SHA-1 that names a script in a server's cache (Redis, `EVALSHA`). It guards nothing.
fn digest(source: &str) -> String {
    redis::Script::new(source).get_hash().to_owned()
}
