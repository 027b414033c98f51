//! Things that happen on the way to the server.

use std::time::Duration;

use tidegate::Source;

use super::{Report, Setting};
use crate::callers::Callers;
use crate::given::proxy::{OPEN, Proxy, Way};
use crate::server::{Kind, Server};

/// The network swallows everything, and says nothing.
pub(crate) fn blackholed(setting: &Setting) -> Report {
    through("a blackholed connection", Way::Swallow, setting)
}

/// The network is slow: each direction takes 100 ms, so an answer takes 200 ms more.
pub(crate) fn delayed(setting: &Setting) -> Report {
    through("200 ms of delay", Way::Pass(Duration::from_millis(100)), setting)
}

/// Nobody listens.
pub(crate) fn refused(setting: &Setting) -> Report {
    through("a refused connection", Way::Refuse, setting)
}

fn through(name: &'static str, way: Way, setting: &Setting) -> Report {
    let server = Server::start(Kind::Valkey9);
    let proxy = Proxy::before(server.port());
    let callers = Callers::of(&proxy.url(), setting.deadline);
    callers.go_on_for(setting.calm);
    proxy.set(way);
    callers.answered_by(Source::Fallback);
    callers.go_on_for(setting.outage);
    proxy.set(OPEN);
    let recovery = callers.answered_by(Source::Store);
    callers.go_on_for(setting.calm);
    Report { name, seen: callers.end(), losses: 0, recovery: Some(recovery) }
}
