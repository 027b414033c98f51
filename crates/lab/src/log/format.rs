//! The formats that are known by name, and those that somebody writes down.

use std::fmt;
use std::str::FromStr;

use crate::log::field::Field;
use crate::log::notation;
use crate::log::program::Program;

/// A format that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// Apache's common format.
    Common,
    /// Apache's and nginx's combined format.
    Combined,
    /// The format `main` of nginx's example configuration: combined, and X-Forwarded-For.
    Main,
    /// Common, behind the host and its port.
    VhostCommon,
    /// Combined, behind the host and its port.
    VhostCombined,
    /// Caddy's JSON.
    Caddy,
    /// Traefik's text.
    Traefik,
    /// Traefik's JSON.
    TraefikJson,
    /// Envoy's default.
    Envoy,
    /// `option httplog` of HAProxy.
    Haproxy,
    /// An application load balancer of AWS.
    Alb,
    /// A classic load balancer of AWS.
    Elb,
    /// CloudFront's standard logs.
    CloudFront,
    /// W3C extended, as IIS writes it.
    W3c,
    /// One JSON object on each line, with fields of usual names.
    Json,
}

/// Fields that tell a line of a load balancer's early versions from a later one.
const ALB_FIELDS_REQUIRED: usize = 14;

impl Known {
    /// All of them: those that fit fewer lines stand first, since a line of `main` is one of `combined` too.
    pub const ALL: [Self; 15] = [
        Self::Caddy,
        Self::TraefikJson,
        Self::Json,
        Self::CloudFront,
        Self::W3c,
        Self::Envoy,
        Self::Alb,
        Self::Elb,
        Self::Haproxy,
        Self::Traefik,
        Self::VhostCombined,
        Self::Main,
        Self::Combined,
        Self::VhostCommon,
        Self::Common,
    ];

    /// The name by which it is asked for.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Common => "common",
            Self::Combined => "combined",
            Self::Main => "main",
            Self::VhostCommon => "vhost-common",
            Self::VhostCombined => "vhost-combined",
            Self::Caddy => "caddy",
            Self::Traefik => "traefik",
            Self::TraefikJson => "traefik-json",
            Self::Envoy => "envoy",
            Self::Haproxy => "haproxy",
            Self::Alb => "alb",
            Self::Elb => "elb",
            Self::CloudFront => "cloudfront",
            Self::W3c => "w3c",
            Self::Json => "json",
        }
    }

    /// The format of text in our notation; `None` if it is of another kind.
    const fn plain(self) -> Option<&'static str> {
        Some(match self {
            Self::Common => r#"{client} {-} {user} [{time}] "{request}" {status} {bytes}"#,
            Self::Combined => r#"{client} {-} {user} [{time}] "{request}" {status} {bytes} "{referer}" "{agent}""#,
            Self::Main => {
                r#"{client} {-} {user} [{time}] "{request}" {status} {bytes} "{referer}" "{agent}" "{forwarded}""#
            }
            Self::VhostCommon => r#"{host}:{-} {client} {-} {user} [{time}] "{request}" {status} {bytes}"#,
            Self::VhostCombined => {
                r#"{host}:{-} {client} {-} {user} [{time}] "{request}" {status} {bytes} "{referer}" "{agent}""#
            }
            Self::Traefik => {
                r#"{client} {-} {user} [{time}] "{request}" {status} {bytes} "{referer}" "{agent}" {-} "{-}" "{-}" {duration-ms}"#
            }
            Self::Envoy => {
                r#"[{time}] "{request}" {status} {-} {-} {bytes} {duration-ms} {-} "{forwarded-client}" "{agent}" "{-}" "{host}" "{-}""#
            }
            Self::Haproxy => r#"{client} [{time}] {-} {-} {timers} {status} {bytes} {-} {-} {-} {-} {-}"{request}""#,
            Self::Alb => {
                r#"{-} {time} {-} {client} {-} {-} {-} {-} {status} {-} {-} {bytes} "{request}" "{agent}" {-} {-} {-} "{-}" "{host}" "{-}" {-} {time}"#
            }
            Self::Elb => r#"{time} {-} {client} {-} {-} {-} {-} {status} {-} {-} {bytes} "{request}" "{agent}""#,
            Self::Caddy | Self::TraefikJson | Self::Json | Self::CloudFront | Self::W3c => return None,
        })
    }

    /// The format of text, compiled.
    pub(crate) fn program(self) -> Option<Program> {
        // What is written above is right, as a test holds.
        let program = Program::new(notation::plain(self.plain()?).ok()?);
        Some(match self {
            Self::Alb => program.with_required(ALB_FIELDS_REQUIRED),
            Self::Haproxy => program.with_prefix(),
            Self::Envoy => program.with_bare_quotes(),
            _ => program,
        })
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the lines of a log are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// As one of those known by name.
    Known(Known),
    /// As somebody wrote it down.
    Custom {
        /// What was written.
        text: String,
        /// The same, compiled.
        program: Program,
        /// Is a line's time that of the response's end, as nginx has it?
        is_stamped_at_end: bool,
    },
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(known) => known.fmt(f),
            Self::Custom { text, .. } => f.write_str(text),
        }
    }
}

impl FromStr for Format {
    type Err = FormatError;

    /// Reads a name, or a format in nginx's (`$remote_addr`), Apache's (`%h`), goaccess's (`%h %^[%d:%t %^]`) or our own
    /// notation (`{client}`).
    ///
    /// # Errors
    /// It is neither, or has no time or no client.
    fn from_str(text: &str) -> Result<Self, FormatError> {
        if let Some(known) = Known::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(text)) {
            return Ok(Self::Known(known));
        }
        let is_nginx = text.contains('$');
        let pieces = match text {
            _ if is_nginx => Ok(notation::nginx(text)),
            _ if notation::is_likely(text) => notation::goaccess(text),
            _ if text.contains('%') => notation::apache(text),
            _ if text.contains('{') => notation::plain(text),
            _ => return Err(FormatError::unknown(text)),
        };
        let program = Program::new(pieces.map_err(FormatError)?);
        if !program.has(|field| matches!(field, Field::Time | Field::Date)) {
            return Err(FormatError(format!("`{text}` does not say when a request came")));
        }
        if !program.has(|field| matches!(field, Field::Client | Field::ForwardedClient)) {
            return Err(FormatError(format!("`{text}` does not say who sent a request")));
        }
        Ok(Self::Custom { text: text.to_owned(), program, is_stamped_at_end: is_nginx })
    }
}

/// It is no format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError(String);

impl FormatError {
    fn unknown(text: &str) -> Self {
        let names = Known::ALL.map(Known::name).join(", ");
        Self(format!(
            "there is no format `{text}`; there are auto, {names}, or write one down, such as '$remote_addr [$time_local]'"
        ))
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FormatError {}
