//! The kinds of failure, and what each speaks against.
//!
//! A server's error begins with a word that names its kind; the text after it differs between servers and versions, so the
//! word alone is read. What follows from a failure depends on what it speaks against: a connection is made anew, a store
//! is left alone after several, a configuration is complained about once, and a redirect is followed.

/// A kind of failure. There are few, so that they can be a label of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FailureKind {
    /// No answer within the deadline.
    Deadline,
    /// No connection, or left alone.
    Unavailable,
    /// Too many wait already.
    Full,
    /// The answer is not the script's.
    Malformed,
    /// The server is still reading its data.
    Loading,
    /// The server is a replica.
    ReadOnly,
    /// The server is a replica that has lost its primary.
    MasterDown,
    /// The keys are elsewhere, and following did not lead there in time.
    Moved,
    /// The cluster serves none of the slot's keys now.
    ClusterDown,
    /// The server has no memory for another bucket, and forgets none.
    OutOfMemory,
    /// The server is in a long script.
    ServerBusy,
    /// The server refuses to write: its disk or its replicas are not as configured.
    WriteRefused,
    /// The server wants another user or password, or none.
    Login,
    /// The user may not do what is needed.
    Permission,
    /// The server does not let a script read the clock.
    Clock,
    /// The URL names another kind of deployment than there is, or a database or service that there is not.
    Deployment,
    /// The server's certificate is not trusted, or TLS is spoken on one side only.
    Tls,
    /// The bucket holds something else.
    Bucket,
    /// Any other error of the server.
    Other,
}

/// A failure with its words, which a server or an operating system chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: FailureKind,
    pub(crate) text: String,
}

impl Fault {
    pub(crate) fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// What a server answered.
    pub(crate) fn answered(text: String) -> Self {
        Self { kind: FailureKind::of_answer(&text), text }
    }
}

/// What a failure speaks against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Against {
    /// Another one may lead elsewhere.
    Connection,
    /// After a run of them it is left alone.
    Store,
    /// Nothing will help but whoever runs it; named once.
    Configuration,
    /// What was asked; the store is well.
    Request,
}

impl FailureKind {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Deadline,
        Self::Unavailable,
        Self::Full,
        Self::Malformed,
        Self::Loading,
        Self::ReadOnly,
        Self::MasterDown,
        Self::Moved,
        Self::ClusterDown,
        Self::OutOfMemory,
        Self::ServerBusy,
        Self::WriteRefused,
        Self::Login,
        Self::Permission,
        Self::Clock,
        Self::Deployment,
        Self::Tls,
        Self::Bucket,
        Self::Other,
    ];

    /// A short name for metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Unavailable => "unavailable",
            Self::Full => "full",
            Self::Malformed => "malformed",
            Self::Loading => "loading",
            Self::ReadOnly => "read_only",
            Self::MasterDown => "master_down",
            Self::Moved => "moved",
            Self::ClusterDown => "cluster_down",
            Self::OutOfMemory => "out_of_memory",
            Self::ServerBusy => "server_busy",
            Self::WriteRefused => "write_refused",
            Self::Login => "login",
            Self::Permission => "permission",
            Self::Clock => "clock",
            Self::Deployment => "deployment",
            Self::Tls => "tls",
            Self::Bucket => "bucket",
            Self::Other => "other",
        }
    }

    /// The kind of a server's error.
    pub(crate) fn of_answer(text: &str) -> Self {
        match text.split([' ', ':']).next().unwrap_or_default() {
            "LOADING" => Self::Loading,
            "READONLY" => Self::ReadOnly,
            "MASTERDOWN" => Self::MasterDown,
            "MOVED" | "ASK" | "TRYAGAIN" => Self::Moved,
            "CLUSTERDOWN" => Self::ClusterDown,
            "OOM" => Self::OutOfMemory,
            "BUSY" | "UNKILLABLE" => Self::ServerBusy,
            "MISCONF" | "NOREPLICAS" => Self::WriteRefused,
            "NOAUTH" | "WRONGPASS" => Self::Login,
            "NOPERM" => Self::Permission,
            "CROSSSLOT" => Self::Deployment,
            "WRONGTYPE" => Self::Bucket,
            _ => Self::of_sentence(text),
        }
    }

    /// Some refusals come under no word of their own.
    fn of_sentence(text: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|words| text.contains(words));
        if has(&["without any password configured", "Client sent AUTH"]) {
            Self::Login
        } else if has(&["executing the script can't", "ACL failure"]) {
            Self::Permission
        } else if has(&["not allowed from script", "non deterministic", "non-deterministic"]) {
            Self::Clock
        } else if has(&["cluster support disabled", "cluster mode", "DB index"]) {
            Self::Deployment
        } else {
            Self::Other
        }
    }

    pub(crate) fn against(self) -> Against {
        match self {
            Self::Loading | Self::ReadOnly | Self::MasterDown => Against::Connection,
            Self::Login | Self::Permission | Self::Clock | Self::Deployment | Self::Tls => Against::Configuration,
            Self::Moved | Self::ClusterDown | Self::Bucket | Self::Full => Against::Request,
            Self::Deadline
            | Self::Unavailable
            | Self::Malformed
            | Self::OutOfMemory
            | Self::ServerBusy
            | Self::WriteRefused
            | Self::Other => Against::Store,
        }
    }

    /// What whoever runs the store can do about it.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::Login => "check the user and password of the store's URL",
            Self::Permission => {
                "grant the user what is needed: ~PREFIX{* +eval +evalsha +script|load +time +get +set +del, for sliding \
                 logs also +lindex +lrange +lset +ltrim +lpush +rpush +pexpire, in a cluster also +cluster|slots \
                 +asking, and +select for a database other than 0"
            }
            Self::Clock => {
                "the server does not let a script read the clock and then write: use Redis 5 or later, Valkey, or a \
                 service that allows TIME in scripts"
            }
            Self::Deployment => {
                "write the URL of a cluster as redis+cluster://host:port, of one server as redis://host:port/database, \
                 and of a service that sentinels watch as redis+sentinel://host:port/service"
            }
            Self::Tls => {
                "check that the server's port speaks TLS, that its certificate is for the host of the URL, and name the \
                 authority that signed it as the CA file"
            }
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_of_an_error_is_read_and_not_the_rest() {
        for (text, kind) in [
            (
                "READONLY You can't write against a read only replica. script: ab, on @user_script:9.",
                FailureKind::ReadOnly,
            ),
            ("LOADING Redis is loading the dataset in memory", FailureKind::Loading),
            ("OOM command not allowed when used memory > 'maxmemory'.", FailureKind::OutOfMemory),
            ("MOVED 3999 127.0.0.1:6381", FailureKind::Moved),
            ("NOPERM this user has no permissions to run the 'evalsha' command", FailureKind::Permission),
            ("NOREPLICAS Not enough good replicas to write.", FailureKind::WriteRefused),
            ("ERR SELECT is not allowed in cluster mode", FailureKind::Deployment),
            ("ERR This Redis command is not allowed from script", FailureKind::Clock),
            ("ERR something READONLY", FailureKind::Other),
            ("", FailureKind::Other),
        ] {
            assert_eq!(FailureKind::of_answer(text), kind, "{text}");
        }
    }

    #[test]
    fn each_kind_has_a_label_of_its_own_and_what_speaks_against_a_configuration_a_remedy() {
        let mut labels: Vec<_> = FailureKind::ALL.iter().map(|kind| kind.label()).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), FailureKind::ALL.len());
        for kind in FailureKind::ALL {
            assert_eq!(kind.against() == Against::Configuration, !kind.remedy().is_empty(), "{kind:?}");
        }
    }
}
