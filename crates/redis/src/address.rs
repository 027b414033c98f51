//! Where a store is, as its URL says.
//!
//! ```text
//! redis://[user:password@]host[:port][/database]                        one server
//! redis+unix:///path/of.sock[?db=n&user=u&pass=p]                       one server, by its socket
//! redis+sentinel://[user:password@]host[:port][,host[:port]..]/service[/database]
//! redis+cluster://[user:password@]host[:port][,host[:port]..]
//! ```
//!
//! `rediss` in place of `redis` is TLS; `valkey` and `valkeys` are the same two words. `?protocol=resp3` chooses the
//! protocol. User and password are those of the servers that keep data; sentinels are logged in to with
//! `?sentinel_user=u&sentinel_password=p`. What an error shows of a URL is never part of a password.

use std::fmt;
use std::path::PathBuf;

use crate::url::{Url, UrlError};

/// The most hosts in one URL.
pub(crate) const HOSTS_MAX: usize = 64;
/// The port of a server, and of a sentinel, that names none.
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26_379;

pub(crate) const ONE_SERVER: &str = "redis://user:password@127.0.0.1:6379/0";
const SOCKET: &str = "redis+unix:///run/redis.sock?db=0";
const SENTINEL: &str = "redis+sentinel://user:password@10.0.0.1:26379,10.0.0.2:26379/service/0";
const CLUSTER: &str = "redis+cluster://user:password@10.0.0.1:6379,10.0.0.2:6379";

/// A deployment and how to log in to its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) deployment: Deployment,
    pub(crate) login: Login,
    pub(crate) is_tls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deployment {
    One(Place),
    Sentinel { sentinels: Vec<HostPort>, service: String, login: Login },
    Cluster { seeds: Vec<HostPort> },
}

/// Where one server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp(HostPort),
    Unix(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Who asks, for which database, in which protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) database: u32,
    pub(crate) is_resp3: bool,
}

/// A word that no message shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(word: String) -> Self {
        Self(word)
    }

    /// The word itself, to be sent and nothing else.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Address {
    /// # Errors
    /// What is wrong with the URL, and an example of the right form.
    pub(crate) fn parse(url: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| UrlError::new("it has no scheme", ONE_SERVER))?;
        let (family, kind) = scheme.split_once('+').unwrap_or(match scheme {
            "unix" => ("redis", "unix"),
            _ => (scheme, ""),
        });
        let is_tls = match family {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return Err(unknown_scheme(scheme)),
        };
        let (deployment, login) = match kind {
            "" => one_server(Url::parse(rest, ONE_SERVER)?)?,
            "unix" if !is_tls => socket(rest)?,
            "sentinel" => sentinel(Url::parse(rest, SENTINEL)?)?,
            "cluster" => cluster(Url::parse(rest, CLUSTER)?)?,
            _ => return Err(unknown_scheme(scheme)),
        };
        Ok(Self { deployment, login, is_tls })
    }
}

fn unknown_scheme(scheme: &str) -> UrlError {
    let what = format!(
        "`{scheme}` is none of redis, rediss (TLS), redis+unix, redis+sentinel, rediss+sentinel, redis+cluster and \
         rediss+cluster"
    );
    UrlError::new(what, ONE_SERVER)
}

fn one_server(mut url: Url<'_>) -> Result<(Deployment, Login), UrlError> {
    let mut hosts = url.hosts(PORT)?;
    if hosts.len() > 1 {
        return Err(UrlError::new("several hosts are a cluster's, or sentinels", CLUSTER));
    }
    let login = Login { database: url.database(url.path)?, ..url.login()? };
    url.finish()?;
    Ok((Deployment::One(Place::Tcp(hosts.remove(0))), login))
}

fn socket(rest: &str) -> Result<(Deployment, Login), UrlError> {
    let mut url = Url::of_path(rest, SOCKET)?;
    if !url.path.starts_with('/') {
        return Err(UrlError::new("the path of a socket begins with `/`, after the two of `://`", SOCKET));
    }
    let database = url.parameter("db")?.unwrap_or_default();
    let (user, password) = (url.parameter("user")?, url.parameter("pass")?.map(Secret::new));
    let login = Login { user, password, database: url.database(&database)?, ..url.login()? };
    let path = PathBuf::from(url.decoded(url.path)?);
    url.finish()?;
    Ok((Deployment::One(Place::Unix(path)), login))
}

fn sentinel(mut url: Url<'_>) -> Result<(Deployment, Login), UrlError> {
    let sentinels = url.hosts(SENTINEL_PORT)?;
    let (service, database) = url.path.split_once('/').unwrap_or((url.path, ""));
    if service.is_empty() {
        return Err(UrlError::new("the path names no service that the sentinels watch", SENTINEL));
    }
    let service = url.decoded(service)?;
    let (user, password) = (url.parameter("sentinel_user")?, url.parameter("sentinel_password")?.map(Secret::new));
    let of_sentinels = Login { user, password, ..Login::default() };
    let login = Login { database: url.database(database)?, ..url.login()? };
    url.finish()?;
    Ok((Deployment::Sentinel { sentinels, service, login: of_sentinels }, login))
}

fn cluster(mut url: Url<'_>) -> Result<(Deployment, Login), UrlError> {
    let seeds = url.hosts(PORT)?;
    if url.database(url.path)? != 0 {
        return Err(UrlError::new("a cluster has no database but 0", CLUSTER));
    }
    let login = url.login()?;
    url.finish()?;
    Ok((Deployment::Cluster { seeds }, login))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Address {
        Address::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    fn at(host: &str, port: u16) -> HostPort {
        HostPort { host: host.to_owned(), port }
    }

    #[test]
    fn every_kind_of_deployment_has_its_url() {
        let plain = address("redis://localhost");
        assert_eq!(plain.deployment, Deployment::One(Place::Tcp(at("localhost", 6379))));
        assert_eq!((plain.login, plain.is_tls), (Login::default(), false));

        let full = address("rediss://us%40er:p%2Fw@[::1]:7000/3?protocol=resp3");
        assert_eq!(full.deployment, Deployment::One(Place::Tcp(at("::1", 7000))));
        let password = Some(Secret::new("p/w".to_owned()));
        let login = Login { user: Some("us@er".to_owned()), password, database: 3, is_resp3: true };
        assert_eq!((full.login, full.is_tls), (login, true));

        for url in ["unix:///run/a%20b.sock?db=2&user=u&pass=p", "redis+unix:///run/a%20b.sock?db=2&user=u&pass=p"] {
            let socket = address(url);
            assert_eq!(socket.deployment, Deployment::One(Place::Unix(PathBuf::from("/run/a b.sock"))));
            assert_eq!((socket.login.database, socket.login.user), (2, Some("u".to_owned())));
        }
        let cluster = address("valkeys+cluster://:pw@a:1,b,[::1]:3/");
        let seeds = vec![at("a", 1), at("b", 6379), at("::1", 3)];
        assert_eq!((cluster.deployment, cluster.is_tls), (Deployment::Cluster { seeds }, true));
        assert_eq!((cluster.login.user, cluster.login.password), (None, Some(Secret::new("pw".to_owned()))));

        let sentinel = address("redis+sentinel://u:p@a,b:1/main/5?sentinel_password=s");
        let login = Login { password: Some(Secret::new("s".to_owned())), ..Login::default() };
        let sentinels = vec![at("a", 26_379), at("b", 1)];
        assert_eq!(sentinel.deployment, Deployment::Sentinel { sentinels, service: "main".to_owned(), login });
        assert_eq!((sentinel.login.database, sentinel.login.user), (5, Some("u".to_owned())));
    }

    #[test]
    fn a_wrong_url_is_told_what_is_wrong_and_what_is_right() {
        for (url, what) in [
            ("localhost:6379", "no scheme"),
            ("http://localhost", "`http` is none of redis"),
            ("redis+udp://localhost", "`redis+udp` is none of redis"),
            ("rediss+unix:///run/redis.sock", "is none of redis"),
            ("redis://", "names no host"),
            ("redis://localhost:port", "the port of `localhost` is no number from 1 to 65535"),
            ("redis://localhost:0", "the port of `localhost` is no number from 1 to 65535"),
            ("redis://[::1", "bracket"),
            ("redis://localhost/one", "the database is no number"),
            ("redis://localhost/0?protocl=resp3", "`protocl` is no parameter"),
            ("redis://localhost?protocol=4", "the protocol is resp2 or resp3"),
            ("rediss://localhost#insecure", "after `#`"),
            ("redis://a,b", "several hosts"),
            ("redis://0.0.0.0", "every address"),
            ("redis+unix://run/redis.sock", "begins with `/`"),
            ("redis+sentinel://a,b", "names no service"),
            ("redis+cluster://a,,b", "names no host"),
            ("redis+cluster://a/1", "no database but 0"),
            ("redis://u%zz:p@localhost", "two hexadecimal digits"),
        ] {
            let text = Address::parse(url).unwrap_err().to_string();
            assert!(text.contains(what), "{url}: {text}");
            assert!(text.contains("write it like `redis"), "{url}: {text}");
        }
    }

    #[test]
    fn no_message_shows_a_password() {
        for url in [
            "redis://user:se/cr#et?x@host:6379/0",
            "redis://user:secret@host:secret/0",
            "redis://:secret",
            "redis+cluster://user:secret@host,host:99999",
            "redis+sentinel://a/main?sentinel_password=secret",
            "unix:///x?pass=secret&sekret=secret",
            "redis://u:%zzsecret@host",
        ] {
            let shown = match Address::parse(url) {
                Ok(address) => format!("{address:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(!shown.contains("secret") && !shown.contains("se/cr"), "{url}: {shown}");
        }
        assert_eq!(address("redis://u:a/b#c?d@host").login.password, Some(Secret::new("a/b#c?d".to_owned())));
    }
}
