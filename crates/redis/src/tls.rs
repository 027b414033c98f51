//! Which servers are trusted, and who asks them.
//!
//! A server's certificate is always verified, against its host's name. The system's authorities are trusted, or those of
//! a file and no others.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// Files for TLS, in PEM. None is needed if the servers' certificates are signed by an authority that the system trusts,
/// and the servers want none of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The certificates of the authorities to trust, in place of the system's.
    pub ca: Option<PathBuf>,
    /// Our certificate, with what leads to its authority, for servers that want one (Redis does, unless
    /// `tls-auth-clients` says otherwise).
    pub certificate: Option<PathBuf>,
    /// The key of our certificate.
    pub key: Option<PathBuf>,
}

/// Why TLS cannot be set up.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or holds no such thing.
    File {
        /// Which file.
        path: PathBuf,
        /// What should be in it.
        holds: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The system names no authority to trust.
    NoAuthorities,
    /// A certificate without its key, or a key without its certificate.
    Half,
    /// Our certificate and key cannot be used.
    Identity(rustls::Error),
    /// There are files for TLS, and the URL is one without.
    NotAsked,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, holds, why } => write!(f, "{} in {}: {why}", holds, path.display()),
            Self::NoAuthorities => f.write_str("the system trusts no authority; name a CA file"),
            Self::Half => f.write_str("a certificate and its key go together; one of them is missing"),
            Self::Identity(error) => write!(f, "the certificate and its key cannot be used: {error}"),
            Self::NotAsked => f.write_str("there are files for TLS; write the URL with `rediss` in place of `redis`"),
        }
    }
}

impl std::error::Error for TlsError {}

impl TlsFiles {
    pub(crate) fn connector(&self) -> Result<TlsConnector, TlsError> {
        // The provider is named, so that no other one in the same program decides.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = versions.map_err(TlsError::Identity)?.with_root_certificates(self.authorities()?);
        let config = match (&self.certificate, &self.key) {
            (None, None) => config.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, "a private key", error))?;
                config.with_client_auth_cert(certificates(certificate)?, key).map_err(TlsError::Identity)?
            }
            _ => return Err(TlsError::Half),
        };
        Ok(TlsConnector::from(Arc::new(config)))
    }

    fn authorities(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        match &self.ca {
            Some(path) => {
                for authority in certificates(path)? {
                    roots.add(authority).map_err(|error| unreadable(path, AUTHORITIES, error))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() { Err(TlsError::NoAuthorities) } else { Ok(roots) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

const AUTHORITIES: &str = "certificates";

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| unreadable(path, AUTHORITIES, error))?;
    if certificates.is_empty() { Err(unreadable(path, AUTHORITIES, "there are none")) } else { Ok(certificates) }
}

fn unreadable(path: &Path, holds: &'static str, why: impl fmt::Display) -> TlsError {
    TlsError::File { path: path.to_path_buf(), holds, why: why.to_string() }
}
