//! Things that happen to the server.

use redis::cmd;
use tidegate::Source;

use super::{Report, Setting};
use crate::callers::Callers;
use crate::given::answer;
use crate::server::{Kind, Server};

/// `kill -9`, and later a new start without anything that it knew.
pub(crate) fn killed(setting: &Setting) -> Report {
    let mut server = Server::start(Kind::Valkey9);
    let callers = Callers::of(&server.url(), setting.deadline);
    callers.go_on_for(setting.calm);
    server.kill();
    callers.answered_by(Source::Fallback);
    callers.go_on_for(setting.outage);
    server.start_again();
    let recovery = callers.answered_by(Source::Store);
    callers.go_on_for(setting.calm);
    Report { name: "kill -9 and restart", seen: callers.end(), losses: 1, recovery: Some(recovery) }
}

/// The server forgets the script, again and again.
pub(crate) fn flushed_scripts(setting: &Setting) -> Report {
    let server = Server::start(Kind::Redis7);
    let callers = Callers::of(&server.url(), setting.deadline);
    let mut connection = server.connection();
    for _ in 0..10 {
        answer(&mut connection, cmd("SCRIPT").arg("FLUSH"));
        callers.go_on_for(setting.outage / 10);
    }
    callers.answered_by(Source::Store);
    Report { name: "SCRIPT FLUSH, ten times", seen: callers.end(), losses: 0, recovery: None }
}

/// No room for a write.
pub(crate) fn out_of_memory(setting: &Setting) -> Report {
    let server = Server::start(Kind::Redis8);
    let set = |bytes: &str| answer(&mut server.connection(), cmd("CONFIG").arg("SET").arg("maxmemory").arg(bytes));
    let callers = Callers::of(&server.url(), setting.deadline);
    callers.go_on_for(setting.calm);
    set("1");
    callers.answered_by(Source::Fallback);
    callers.go_on_for(setting.outage);
    set("0");
    let recovery = callers.answered_by(Source::Store);
    callers.go_on_for(setting.calm);
    Report { name: "maxmemory reached", seen: callers.end(), losses: 0, recovery: Some(recovery) }
}

/// The server at the address is a replica for a while, of a primary that cannot be reached.
pub(crate) fn became_a_replica(setting: &Setting) -> Report {
    let server = Server::start(Kind::Redis7);
    let of = |host: &str, port: &str| answer(&mut server.connection(), cmd("REPLICAOF").arg(host).arg(port));
    let callers = Callers::of(&server.url(), setting.deadline);
    callers.go_on_for(setting.calm);
    of("127.0.0.1", "1");
    callers.answered_by(Source::Fallback);
    callers.go_on_for(setting.outage);
    of("NO", "ONE");
    let recovery = callers.answered_by(Source::Store);
    callers.go_on_for(setting.calm);
    Report { name: "a replica in the primary's place", seen: callers.end(), losses: 0, recovery: Some(recovery) }
}
