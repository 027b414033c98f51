//! Which upstreams are trusted.
//!
//! An upstream's certificate is always verified, against its host's name. The system's authorities are trusted, or those
//! of a file and no others; there is no way to trust nobody in particular.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// The names of protocols in the handshake (RFC 7301), the preferred first.
const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

/// TLS towards upstreams. Clones share their sessions.
#[derive(Clone)]
pub struct UpstreamTls {
    /// Offers HTTP/2 and HTTP/1.1.
    any: TlsConnector,
    /// Offers HTTP/1.1 alone, for connections that are to be upgraded.
    http1: TlsConnector,
}

impl fmt::Debug for UpstreamTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamTls")
    }
}

/// Why TLS towards upstreams cannot be set up.
#[derive(Debug)]
#[non_exhaustive]
pub enum UpstreamTlsError {
    /// The file cannot be read, or holds no certificates that can be used.
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The system names no authority to trust.
    NoAuthorities,
    /// There is no common version of TLS.
    Setup(rustls::Error),
}

impl fmt::Display for UpstreamTlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, why } => write!(f, "certificates in {}: {why}", path.display()),
            Self::NoAuthorities => f.write_str("the system trusts no authority; name a file of authorities"),
            Self::Setup(error) => write!(f, "TLS cannot be set up: {error}"),
        }
    }
}

impl std::error::Error for UpstreamTlsError {}

impl UpstreamTls {
    /// Trusts the authorities that the system trusts.
    ///
    /// # Errors
    /// There are none.
    pub fn trusting_system() -> Result<Self, UpstreamTlsError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() { Err(UpstreamTlsError::NoAuthorities) } else { Self::trusting(roots) }
    }

    /// Trusts the authorities whose certificates stand in the file at `path`, in PEM, and no others.
    ///
    /// # Errors
    /// The file cannot be read, or holds no certificates that can be used.
    pub fn trusting_file(path: &Path) -> Result<Self, UpstreamTlsError> {
        let unusable = |why: String| UpstreamTlsError::File { path: path.to_path_buf(), why };
        let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut roots = RootCertStore::empty();
        for authority in read.map_err(|error| unusable(error.to_string()))? {
            roots.add(authority).map_err(|error| unusable(error.to_string()))?;
        }
        if roots.is_empty() { Err(unusable("there are none".to_owned())) } else { Self::trusting(roots) }
    }

    fn trusting(roots: RootCertStore) -> Result<Self, UpstreamTlsError> {
        // The provider is named, so that no other one in the same program decides.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = versions.map_err(UpstreamTlsError::Setup)?.with_root_certificates(roots).with_no_client_auth();
        let offering = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
            TlsConnector::from(Arc::new(config))
        };
        Ok(Self { any: offering(&[HTTP_2, HTTP_1]), http1: offering(&[HTTP_1]) })
    }

    /// What offers HTTP/1.1 alone, or both.
    pub(crate) fn connector(&self, only_http1: bool) -> &TlsConnector {
        if only_http1 { &self.http1 } else { &self.any }
    }
}

/// Did both sides agree on HTTP/2? Who names no protocol speaks HTTP/1.1.
pub(crate) fn is_http2(agreed: Option<&[u8]>) -> bool {
    agreed == Some(HTTP_2)
}
