//! What a store is, found out once at the start.
//!
//! A decision over a bucket of its own is the probe: it needs every permission that a decision needs, reads the clock
//! inside of the script, and writes. What else is told comes from `INFO`, as far as the user may ask for it.

use std::fmt;

use redis::cmd;
use tidegate_core::{Charge, Decision, Limit, LimitId, Store as _};

use crate::address::Place;
use crate::connection::Connection;
use crate::route::Route;
use crate::target::text;
use crate::{RedisStore, StoreError};

/// What answered at the other end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// `redis`, `valkey` or another name that the server gives itself. `None` if it does not tell.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// `standalone` or `cluster`.
    pub mode: Option<String>,
    /// What the server does when its memory is full.
    pub eviction: Option<String>,
}

impl ServerInfo {
    /// What may surprise whoever runs it: limits that are forgotten when the memory is full.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let eviction = self.eviction.as_ref().filter(|policy| policy.starts_with("allkeys-"))?;
        Some(format!(
            "the server's maxmemory-policy is {eviction}: when its memory is full it forgets buckets that are not full, and \
             limits with them; use volatile-ttl or noeviction"
        ))
    }

    fn read(info: &str) -> Self {
        let field = |name: &str| {
            let mut lines = info.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(field, _)| *field == name).map(|(_, value)| value.trim().to_owned())
        };
        // Valkey gives itself out for the Redis that it is compatible with, and says its own name beside.
        let named = field("server_name");
        let own_version = named.as_ref().and_then(|name| field(&format!("{name}_version")));
        let version = own_version.or_else(|| field("redis_version"));
        Self {
            name: named.or_else(|| version.is_some().then(|| "redis".to_owned())),
            version,
            mode: field("redis_mode").or_else(|| field("server_mode")),
            eviction: field("maxmemory_policy"),
        }
    }
}

impl fmt::Display for ServerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_deref().unwrap_or("a server that does not tell its name"))?;
        if let Some(version) = &self.version {
            write!(f, " {version}")?;
        }
        match &self.mode {
            Some(mode) => write!(f, " ({mode})"),
            None => Ok(()),
        }
    }
}

impl RedisStore {
    /// Asks for one decision over a bucket of the probe's own, with patience instead of the deadline, and says what
    /// server there is.
    ///
    /// # Errors
    /// The store does not decide: it is away, or wrong in a way that the error and [`RedisStore::complaint`] name.
    pub async fn probe(&self) -> Result<ServerInfo, StoreError> {
        // Full again within a millisecond.
        let limit: Limit = "1000/s".parse().map_err(|_| StoreError::Malformed)?;
        let quota = limit.quota().ok_or(StoreError::Malformed)?;
        let charge = Charge::new(LimitId::of("tidegate", "probe"), quota, b"tidegate/probe");
        let mut decisions = [Decision::unmade(&quota)];
        let _ = self.patient().decide(&[charge], &mut decisions).await?;
        Ok(self.route.info().await.unwrap_or_default())
    }
}

impl Route {
    /// What one of the servers tells of itself. `None` if none does.
    async fn info(&self) -> Option<ServerInfo> {
        let connection = self.any().await?;
        let mut told = String::new();
        for section in ["server", "memory"] {
            let mut question = cmd("INFO");
            question.arg(section);
            told.push_str(&connection.ask(&question).await.ok().and_then(text)?);
        }
        Some(ServerInfo::read(&told))
    }

    async fn any(&self) -> Option<Connection> {
        let dialer = &self.common().dialer;
        match self {
            Self::One { target, .. } => target.connect(dialer).await.ok(),
            Self::Cluster(cluster) => {
                let map = cluster.map();
                let node = map.nodes().find(|node| node.link.is_up())?;
                dialer.dial(&Place::Tcp(node.at.clone())).await.ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_own_name() {
        let redis = ServerInfo::read("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n");
        assert_eq!(redis.to_string(), "redis 7.0.15 (standalone)");
        let valkey = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nserver_mode:cluster\r\n";
        assert_eq!(ServerInfo::read(valkey).to_string(), "valkey 9.1.2 (cluster)");
        assert_eq!(ServerInfo::read("").to_string(), "a server that does not tell its name");
    }

    #[test]
    fn eviction_without_regard_is_warned_of() {
        let warning = |policy: &str| ServerInfo::read(&format!("maxmemory_policy:{policy}\r\n")).warning();
        assert!(warning("allkeys-lru").is_some_and(|warning| warning.contains("allkeys-lru")));
        assert_eq!((warning("noeviction"), warning("volatile-ttl")), (None, None));
    }
}
