//! The file of a unix socket: made with its mode, and taken away at the end.
//!
//! A socket's file outlives a process that was killed. It is removed only if nobody accepts behind it, so that a second
//! process never takes the place of one that serves.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::client::listen::BACKLOG_MAX;

/// The file of a socket that is bound; removed when this is dropped, if it is still the same one.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

/// Binds a socket at `path` with this mode.
pub(crate) fn bind(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile { path: path.to_owned(), identity: identity(path)? };
    // Nobody can connect before it listens, so nobody connects under another mode.
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    socket.listen(BACKLOG_MAX)?;
    Ok((socket.into(), file))
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(data) = fs::symlink_metadata(path) else { return Ok(()) };
    if !data.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a file at this path, and it is no socket"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(io::ErrorKind::AddrInUse.into()),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|data| (data.dev(), data.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // Whoever comes next removes it otherwise.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_away_and_a_stale_one_replaced() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("socket");
        let (listener, file) = bind(&path, 0o600).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(bind(&path, 0o600).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // As after a kill: nobody listens, and the file is there.
        drop(listener);
        std::mem::forget(file);
        let (listener, file) = bind(&path, 0o660).unwrap();
        drop((listener, file));
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_socket_of_ours_stays() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "precious").unwrap();
        assert_eq!(bind(&path, 0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        let path = folder.path().join("socket");
        let (_listener, file) = bind(&path, 0o600).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another's").unwrap();
        drop(file);
        assert!(path.exists());
    }
}
