//! Which server a link leads to, found anew for each connection.
//!
//! One that has an address is where it was. A service that sentinels watch is where they say (Redis, "Guidelines for
//! Redis clients with support for Redis Sentinel"): they are asked in turn for its primary, and what they name is used if
//! it says itself that it is one.

use std::time::Duration;

use redis::{Value, cmd};
use tokio::time::sleep;

use crate::FailureKind;
use crate::address::{HostPort, Login, Place};
use crate::connection::{Connection, Dialer};
use crate::failure::Fault;
use crate::serve::jittered;

/// So often sentinels are asked again while a connection lasts.
const ASK_AGAIN: Duration = Duration::from_secs(4);

#[derive(Clone, Debug)]
pub(crate) enum Target {
    At(Place),
    Service { sentinels: Vec<HostPort>, service: String, login: Login },
}

impl Target {
    /// A connection to a server that may be written to.
    pub(crate) async fn connect(&self, dialer: &Dialer) -> Result<Connection, Fault> {
        match self {
            Self::At(place) => primary(dialer, place).await,
            Self::Service { sentinels, service, login } => {
                let mut last = Fault::new(FailureKind::Unavailable, "there is no sentinel");
                for sentinel in sentinels {
                    match through(dialer, login, sentinel, service).await {
                        Ok(connection) => return Ok(connection),
                        Err(fault) => last = graver(last, fault),
                    }
                }
                Err(last)
            }
        }
    }

    /// Ready when the sentinels name another primary than the one at `at`: one that is cut off from them may not have
    /// heard yet that it is none any more.
    pub(crate) async fn left(&self, dialer: &Dialer, at: &Place) {
        let Self::Service { sentinels, service, login } = self else { return std::future::pending().await };
        loop {
            sleep(jittered(ASK_AGAIN)).await;
            for sentinel in sentinels {
                match named_by(dialer, login, sentinel, service).await {
                    Ok(named) if named == *at => break,
                    Ok(_) => return,
                    Err(_) => {}
                }
            }
        }
    }
}

/// Of two failures the one that tells more: sentinels that are away say less than one that does not know the service.
fn graver(one: Fault, other: Fault) -> Fault {
    if one.kind.remedy().is_empty() { other } else { one }
}

async fn through(dialer: &Dialer, login: &Login, sentinel: &HostPort, service: &str) -> Result<Connection, Fault> {
    primary(dialer, &named_by(dialer, login, sentinel, service).await?).await
}

/// Where a sentinel says that the service's primary is.
async fn named_by(dialer: &Dialer, login: &Login, sentinel: &HostPort, service: &str) -> Result<Place, Fault> {
    let asked = dialer.dial_as(login, &Place::Tcp(sentinel.clone())).await?;
    let mut question = cmd("SENTINEL");
    question.arg("get-master-addr-by-name").arg(service);
    match asked.ask(&question).await? {
        Value::Nil => {
            let text = format!("the sentinel at {sentinel} watches no service by the name of {service}");
            Err(Fault::new(FailureKind::Deployment, text))
        }
        answer => address(answer).map(Place::Tcp).ok_or_else(|| Fault::new(FailureKind::Malformed, "no address")),
    }
}

fn address(answer: Value) -> Option<HostPort> {
    let Value::Array(parts) = answer else { return None };
    let mut parts = parts.into_iter().map(text);
    Some(HostPort { host: parts.next()??, port: parts.next()??.parse().ok()? })
}

/// A connection to `place`, unless it says that it is a replica.
async fn primary(dialer: &Dialer, place: &Place) -> Result<Connection, Fault> {
    let connection = dialer.dial(place).await?;
    let role = match connection.ask(&cmd("ROLE")).await {
        Ok(Value::Array(parts)) => parts.into_iter().next().and_then(text),
        // A user who may not ask, or a server that does not know: the first decision will tell.
        Ok(_) => None,
        Err(Fault { kind: FailureKind::Permission | FailureKind::Other, .. }) => None,
        Err(fault) => return Err(fault),
    };
    match role.as_deref() {
        Some("slave" | "replica" | "sentinel") => Err(Fault::new(FailureKind::ReadOnly, "it is no primary")),
        _ => Ok(connection),
    }
}

/// A text in either protocol's form.
pub(crate) fn text(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}
